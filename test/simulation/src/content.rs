//! Content of the small world: the packages `alpha`, `beta` and `gamma`, their bundles on disk, and the catalogs that list them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use olm_fbc::{Limits, PackageContent, decode};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Group of the CRD that package `alpha` owns.
pub(crate) const GROUP: &str = "alpha.example.com";

/// Kind of the CRD that package `alpha` owns.
pub(crate) const WIDGET: &str = "Widget";

/// A version of a package; it has one bundle.
#[derive(Clone, Copy, Debug)]
struct Release {
    package: &'static str,
    version: &'static str,
    /// Name of the bundle that this one replaces.
    replaces: Option<&'static str>,
    /// Value in the `ConfigMap` of the bundle; without a value, the bundle has no `ConfigMap`.
    settings: Option<&'static str>,
    /// True if the bundle has a Service.
    service: bool,
    /// Content of the Secret of the bundle, in base64; without content, the bundle has no Secret.
    secret: Option<&'static str>,
    /// True if the Deployment of the bundle never becomes available. Only channel `edge` lists such a bundle.
    broken: bool,
}

/// Contents of the Secrets of the small world, as plain text and in base64. No status, event or revision may show them.
pub(crate) const SECRETS: [&str; 4] = [
    "sesame-open",
    "c2VzYW1lLW9wZW4=",
    "open-sesame",
    "b3Blbi1zZXNhbWU=",
];

const RELEASES: [Release; 8] = [
    release("alpha", "1.0.0", None, Some("calm"), false),
    release("alpha", "1.1.0", Some("alpha.v1.0.0"), Some("brisk"), true),
    release("alpha", "2.0.0", Some("alpha.v1.1.0"), None, true),
    Release {
        broken: true,
        ..release("alpha", "2.1.0", Some("alpha.v2.0.0"), Some("stuck"), true)
    },
    release("beta", "0.1.0", None, Some("one"), false),
    release("beta", "0.2.0", Some("beta.v0.1.0"), Some("two"), false),
    Release {
        secret: Some(SECRETS[1]),
        ..release("gamma", "1.0.0", None, None, false)
    },
    Release {
        secret: Some(SECRETS[3]),
        ..release("gamma", "1.1.0", Some("gamma.v1.0.0"), Some("three"), false)
    },
];

const fn release(
    package: &'static str,
    version: &'static str,
    replaces: Option<&'static str>,
    settings: Option<&'static str>,
    service: bool,
) -> Release {
    Release {
        package,
        version,
        replaces,
        settings,
        service,
        secret: None,
        broken: false,
    }
}

impl Release {
    fn name(&self) -> String {
        format!("{}.v{}", self.package, self.version)
    }

    /// Returns the reference of the bundle's image. The digest is made up from the name.
    fn image(&self) -> String {
        let digest = format!(
            "{:064x}",
            u64::from_str_radix(&hex(&self.name()), 16).unwrap_or(1)
        );
        format!("registry.example.com/{}@sha256:{digest}", self.package)
    }

    fn manifests(&self) -> Vec<(String, Value)> {
        let package = self.package;
        let mut out = vec![("csv.yaml".to_owned(), self.csv())];
        if package == "alpha" {
            out.push(("widgets.yaml".to_owned(), self.crd()));
        }
        if let Some(settings) = self.settings {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("{package}-settings")},
                "data": {"mode": settings}});
            out.push(("settings.yaml".to_owned(), map));
        }
        if let Some(secret) = self.secret {
            let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{package}-token")},
                "type": "Opaque", "data": {"token": secret}});
            out.push(("token.yaml".to_owned(), token));
        }
        if self.service {
            let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": package},
                "spec": {"selector": {"app": package}, "ports": [{"name": "api", "port": 8080, "targetPort": 8080, "protocol": "TCP"}]}});
            out.push(("service.yaml".to_owned(), service));
        }
        out
    }

    fn crd(&self) -> Value {
        // Changes in both directions must be safe for stored objects, so only a description differs.
        let properties = json!({"size": {"type": "integer", "description": self.version}});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("widgets.{GROUP}")},
            "spec": {"group": GROUP, "scope": "Namespaced",
                "names": {"kind": WIDGET, "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}}}]}})
    }

    fn csv(&self) -> Value {
        let package = self.package;
        let image = if self.broken { "broken" } else { self.version };
        let owned = if package == "alpha" {
            json!([{"name": format!("widgets.{GROUP}"), "version": "v1", "kind": WIDGET}])
        } else {
            json!([])
        };
        json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": self.name()},
            "spec": {"version": self.version, "displayName": package,
                "installModes": [{"type": "AllNamespaces", "supported": true}, {"type": "OwnNamespace", "supported": true},
                    {"type": "SingleNamespace", "supported": true}, {"type": "MultiNamespace", "supported": false}],
                "customresourcedefinitions": {"owned": owned},
                "install": {"strategy": "deployment", "spec": {
                    "permissions": [{"serviceAccountName": package,
                        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}],
                    "deployments": [{"name": package, "spec": {"replicas": 1, "selector": {"matchLabels": {"app": package}},
                        "template": {"metadata": {"labels": {"app": package}}, "spec": {"serviceAccountName": package,
                            "containers": [{"name": "main", "image": format!("registry.example.com/{package}/main:{image}")}]}}}}]}}}})
    }

    /// Returns the catalog's object about the bundle.
    fn metas(&self) -> Value {
        json!({"schema": "olm.bundle", "package": self.package, "name": self.name(), "image": self.image(),
            "properties": [{"type": "olm.package", "value": {"packageName": self.package, "version": self.version}}]})
    }
}

/// Returns a hash of the text as 16 hexadecimal digits.
fn hex(text: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// Packages of a catalog at one digest, by name.
pub(crate) type Generation = BTreeMap<String, Arc<PackageContent>>;

/// Bundles on disk and contents of catalogs.
pub struct Content {
    /// Folders of the bundles, by image.
    bundles: BTreeMap<String, PathBuf>,
    /// Contents of catalogs, by digest.
    pub(crate) generations: BTreeMap<String, Generation>,
    /// Parent of the bundles' folders, which is removed with this value.
    _folder: TempDir,
}

/// Digest of the catalog content that lists all releases.
pub(crate) const FULL: &str =
    "registry.example.com/catalog@sha256:f111111111111111111111111111111111111111111111111111111111111111";
/// Digest of an older catalog content. It lacks releases 2.0.0 and 2.1.0 of `alpha` and 0.2.0 of `beta`.
pub(crate) const OLD: &str =
    "registry.example.com/catalog@sha256:0111111111111111111111111111111111111111111111111111111111111111";
/// Digest of the catalog content that lists package `beta` only.
pub(crate) const BETA: &str =
    "registry.example.com/catalog@sha256:b111111111111111111111111111111111111111111111111111111111111111";

impl Content {
    /// Writes the bundles to a new temporary folder.
    ///
    /// # Errors
    /// The folder cannot be written, or a catalog cannot be read back.
    pub fn write() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut bundles = BTreeMap::new();
        for release in &RELEASES {
            let root = folder.path().join(release.name());
            write_bundle(release, &root)?;
            bundles.insert(release.image(), root);
        }
        let mut generations = BTreeMap::new();
        for (digest, lists) in [
            (FULL, &["1.0.0", "1.1.0", "2.0.0", "2.1.0", "0.1.0", "0.2.0"][..]),
            (OLD, &["1.0.0", "1.1.0", "0.1.0"][..]),
            (BETA, &["0.1.0", "0.2.0"][..]),
        ] {
            generations.insert(digest.to_owned(), generation(lists)?);
        }
        Ok(Self {
            bundles,
            generations,
            _folder: folder,
        })
    }

    /// Returns the folder of the bundle with this image.
    pub(crate) fn bundle(&self, image: &str) -> Option<&Path> {
        self.bundles.get(image).map(PathBuf::as_path)
    }
}

fn write_bundle(release: &Release, root: &Path) -> io::Result<()> {
    fs::create_dir_all(root.join("manifests"))?;
    fs::create_dir_all(root.join("metadata"))?;
    for (file, manifest) in release.manifests() {
        fs::write(root.join("manifests").join(file), manifest.to_string())?;
    }
    let prefix = "operators.operatorframework.io.bundle";
    let annotations = json!({"annotations": {
        format!("{prefix}.mediatype.v1"): "registry+v1",
        format!("{prefix}.manifests.v1"): "manifests/",
        format!("{prefix}.metadata.v1"): "metadata/",
        format!("{prefix}.package.v1"): release.package,
        format!("{prefix}.channels.v1"): "stable",
    }});
    fs::write(root.join("metadata/annotations.yaml"), annotations.to_string())
}

/// Builds the content of a catalog that lists the releases with these versions. Channel `stable` lacks the broken releases.
fn generation(versions: &[&str]) -> anyhow::Result<Generation> {
    let mut packages = Generation::new();
    for package in ["alpha", "beta", "gamma"] {
        let listed: Vec<&Release> = RELEASES
            .iter()
            .filter(|release| release.package == package && versions.contains(&release.version))
            .collect();
        if listed.is_empty() {
            continue;
        }
        let entries: Vec<Value> = listed
            .iter()
            .map(|release| match release.replaces {
                Some(replaces) => json!({"name": release.name(), "replaces": replaces}),
                None => json!({"name": release.name()}),
            })
            .collect();
        let stable: Vec<Value> = listed
            .iter()
            .zip(&entries)
            .filter(|(release, _)| !release.broken)
            .map(|(_, entry)| entry.clone())
            .collect();
        let mut metas = vec![
            json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}),
            json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": stable}),
            json!({"schema": "olm.channel", "package": package, "name": "edge", "entries": entries}),
        ];
        metas.extend(listed.iter().map(|release| release.metas()));
        let lines: Vec<String> = metas.iter().map(ToString::to_string).collect();
        let text = lines.join("\n");
        let metas = decode(text.as_bytes(), &Limits::default()).collect::<Result<Vec<_>, _>>()?;
        packages.insert(
            package.to_owned(),
            Arc::new(PackageContent::from_metas(package, metas)?),
        );
    }
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bundle_parses_and_renders() {
        let content = Content::write().unwrap();
        for release in &RELEASES {
            let root = content.bundle(&release.image()).unwrap();
            let bundle = olm_bundle::parse(&olm_bundle_files::read(root).unwrap()).unwrap();
            let objects = olm_bundle::render(&bundle, &olm_bundle::RenderOptions::new("ops")).unwrap();
            assert!(objects.len() >= 4, "{}: {}", release.name(), objects.len());
        }
        assert_eq!(content.generations[OLD]["alpha"].bundles.len(), 2);
    }
}
