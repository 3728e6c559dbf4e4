//! Packages of the measured extensions: tiny ones without a Deployment, and typical ones with five objects.

use anyhow::Result;
use futures::TryStreamExt as _;
use olm_harness::{ImageBuilder, Registry};
use serde_json::{Value, json};

/// Number of images that are pushed in parallel.
const AT_ONCE: usize = 8;

/// Kind of an extension's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Two `ConfigMap`s and a Service. All extensions install the same package.
    Tiny,
    /// A `ServiceAccount`, a `ClusterRole`, its binding, a Deployment and a `ConfigMap`. Each extension has its own package.
    Five,
}

impl Kind {
    /// Returns the package of the extension with this number.
    pub(crate) fn package(self, number: u32) -> String {
        match self {
            Self::Tiny => "tiny".to_owned(),
            Self::Five => format!("five-{number}"),
        }
    }

    /// Returns the name of such extensions in rows.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Tiny => "tiny extensions",
            Self::Five => "five-object extensions",
        }
    }

    /// Returns the packages of this number of extensions.
    pub(crate) fn packages(self, extensions: u32) -> Vec<Package> {
        let numbers = if self == Self::Tiny { 0..1 } else { 0..extensions };
        let package = |number| Package {
            name: self.package(number),
            kind: self,
            versions: &["1.0.0"],
        };
        numbers.map(package).collect()
    }
}

/// A package of a catalog.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    /// Name of the package.
    pub(crate) name: String,
    /// Content of its bundles.
    pub(crate) kind: Kind,
    /// Versions, in the order of upgrades.
    pub(crate) versions: &'static [&'static str],
}

impl Package {
    /// Returns the objects of a catalog about this package. `host` is the address of the registry.
    fn metas(&self, host: &str) -> Vec<Value> {
        let name = &self.name;
        let bundle = |version: &str| format!("{name}.v{version}");
        let mut metas = vec![package_meta(name)];
        let mut entries = Vec::new();
        let mut before: Option<&str> = None;
        for version in self.versions {
            let mut entry = json!({"name": bundle(version)});
            if let Some(before) = before.replace(version) {
                entry["replaces"] = json!(bundle(before));
            }
            entries.push(entry);
            metas.push(
                json!({"schema": "olm.bundle", "package": name, "name": bundle(version),
                "image": format!("{host}/bench/{name}:{version}"),
                "properties": [{"type": "olm.package", "value": {"packageName": name, "version": version}}]}),
            );
        }
        metas.push(channel(name, &entries));
        metas
    }

    /// Returns the manifests of a bundle, the ClusterServiceVersion first.
    fn manifests(&self, version: &str) -> Vec<Value> {
        let name = &self.name;
        let map = |name: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"key": "value", "version": version}})
        };
        let (install, others) = match self.kind {
            Kind::Tiny => {
                let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
                    "spec": {"clusterIP": "None", "selector": {"app": name}}});
                (json!({}), vec![map("one"), map("two"), service])
            }
            Kind::Five => (deployment(name), vec![map(&format!("{name}-settings"))]),
        };
        let csv = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": format!("{name}.v{version}")},
            "spec": {"version": version, "installModes": [{"type": "AllNamespaces", "supported": true}],
                "install": {"strategy": "deployment", "spec": install}},
        });
        std::iter::once(csv).chain(others).collect()
    }

    async fn push(&self, registry: &Registry, version: &str) -> Result<()> {
        let annotations = json!({"annotations": {
            "operators.operatorframework.io.bundle.package.v1": self.name,
            "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
        }});
        let mut image = ImageBuilder::new().file("metadata/annotations.yaml", annotations.to_string());
        for (number, manifest) in self.manifests(version).iter().enumerate() {
            image = image.file(format!("manifests/{number}.yaml"), manifest.to_string());
        }
        image
            .push(registry, &format!("bench/{}:{version}", self.name))
            .await?;
        Ok(())
    }
}

/// Returns the catalog's object about a package.
pub(crate) fn package_meta(name: &str) -> Value {
    json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"})
}

/// Returns the catalog's object about the only channel of a package.
pub(crate) fn channel(package: &str, entries: &[Value]) -> Value {
    json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries})
}

/// Returns the install strategy of an operator: a Deployment, and a `ServiceAccount` with rights in the whole cluster.
fn deployment(name: &str) -> Value {
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]);
    let labels = json!({"app": name});
    json!({
        "clusterPermissions": [{"serviceAccountName": name, "rules": rules}],
        "deployments": [{"name": name, "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"serviceAccountName": name,
                "containers": [{"name": "manager", "image": format!("registry.example/{name}:1")}]}},
        }}],
    })
}

/// Pushes the bundles of all packages.
pub(crate) async fn push_bundles(registry: &Registry, packages: &[Package]) -> Result<()> {
    let bundles = packages
        .iter()
        .flat_map(|package| package.versions.iter().map(move |version| (package, *version)));
    futures::stream::iter(bundles.map(Ok))
        .try_for_each_concurrent(AT_ONCE, async |(package, version)| {
            package.push(registry, version).await
        })
        .await
}

/// Pushes a catalog of the packages as the image `name`. `extra` is the name of one more package without bundles. Returns the
/// reference by digest.
pub(crate) async fn push_catalog(
    registry: &Registry,
    packages: &[Package],
    name: &str,
    extra: Option<&str>,
) -> Result<String> {
    let host = registry.host();
    let mut metas: Vec<Value> = packages.iter().flat_map(|package| package.metas(&host)).collect();
    if let Some(extra) = extra {
        metas.push(json!({"schema": "olm.package", "name": extra, "defaultChannel": "none"}));
    }
    push_metas(registry, &metas, name).await
}

/// Pushes a catalog of these objects as the image `name`, which is `REPOSITORY:TAG`. Returns the reference by digest.
pub(crate) async fn push_metas(registry: &Registry, metas: &[Value], name: &str) -> Result<String> {
    let metas: Vec<String> = metas.iter().map(ToString::to_string).collect();
    let digest = ImageBuilder::new()
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .file("configs/catalog.json", metas.join("\n"))
        .push(registry, name)
        .await?;
    let repository = name.split(':').next().unwrap_or(name);
    Ok(format!("{}/{repository}@{digest}", registry.host()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_replace_each_other() {
        let package = Package {
            name: "edge".to_owned(),
            kind: Kind::Tiny,
            versions: &["1.0.0", "1.0.1"],
        };
        let metas = package.metas("host");
        assert_eq!(metas.len(), 4);
        let entries = &metas.last().unwrap()["entries"];
        assert_eq!(
            *entries,
            json!([{"name": "edge.v1.0.0"}, {"name": "edge.v1.0.1", "replaces": "edge.v1.0.0"}])
        );
    }

    #[test]
    fn extensions_share_a_tiny_package_and_no_other() {
        assert_eq!(Kind::Tiny.packages(3).len(), 1);
        let names: Vec<String> = Kind::Five
            .packages(2)
            .into_iter()
            .map(|package| package.name)
            .collect();
        assert_eq!(names, ["five-0", "five-1"]);
    }
}
