//! Content that the demo installs: the sample, or a given catalog with bundles.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use olm_fbc::{Limits, Meta, PackageContent, decode, schema};
use serde_json::Value;

use super::console::Console;
use super::graph;
use crate::image::{bundle_image_from_dir, catalog_image_from_dir};
use crate::{ImageBuilder, Registry, workspace};

const SAMPLE: &str = "sample-operator";
const SAMPLE_VERSIONS: [&str; 3] = ["1.0.0", "1.1.0", "2.0.0"];
const DEPTH: usize = 3;

/// Version to install or to upgrade to.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// Image of the catalog.
    pub(super) catalog: String,
    /// Version that is installed after the step.
    pub(super) version: String,
    /// Version that the extension requests; `None` for any.
    pub(super) pin: Option<String>,
}

/// Pushed images, and the upgrades of the demo.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) package: String,
    pub(super) channels: Vec<String>,
    /// Namespace to watch, for operators that cannot watch all namespaces.
    pub(super) watch_namespace: Option<String>,
    /// The watched namespace, if it is not the install namespace.
    pub(super) other_namespace: Option<String>,
    pub(super) targets: Vec<Target>,
}

impl Content {
    /// Pushes the sample: a catalog with 1.0.0, and its next edition, which adds 1.1.0.
    pub(super) async fn sample(registry: &Registry, console: &Console) -> Result<Self> {
        let testdata = workspace::testdata();
        for version in SAMPLE_VERSIONS {
            let dir = testdata.join(SAMPLE).join(version);
            bundle_image_from_dir(&dir)?
                .push(registry, &format!("{SAMPLE}/bundle:v{version}"))
                .await?;
        }
        let mut targets = Vec::new();
        for (edition, version) in [("first", "1.0.0"), ("second", "1.1.0")] {
            let image = sample_catalog(edition, &registry.host())?;
            let name = format!("{SAMPLE}/catalog:{edition}");
            image.push(registry, &name).await?;
            let catalog = format!("{}/{name}", registry.host());
            targets.push(Target {
                catalog,
                version: version.to_owned(),
                pin: None,
            });
        }
        console.line("pushed two editions of the sample catalog and three bundles");
        let channels = vec!["stable".to_owned()];
        let package = SAMPLE.to_owned();
        Ok(Self {
            package,
            channels,
            watch_namespace: None,
            other_namespace: None,
            targets,
        })
    }

    /// Pushes given bundles, and their catalog with the new references of the bundles' images.
    pub(super) async fn from_folders(
        registry: &Registry,
        console: &Console,
        catalog: &Path,
        bundles: &Path,
        package: &str,
    ) -> Result<Self> {
        let mut dirs = Vec::new();
        find_bundles(bundles, DEPTH, &mut dirs)?;
        let mut pushed: BTreeMap<String, (PathBuf, String)> = BTreeMap::new();
        for (index, dir) in dirs.iter().enumerate() {
            let (name, _) = csv_of(dir)?;
            let tag = format!("bundles/n{index}:v1");
            let digest = bundle_image_from_dir(dir)?.push(registry, &tag).await?;
            pushed.insert(
                name,
                (
                    dir.clone(),
                    format!("{}/bundles/n{index}@{digest}", registry.host()),
                ),
            );
        }
        console.line(&format!(
            "pushed {} bundles of {}",
            pushed.len(),
            bundles.display()
        ));

        let mut files = BTreeMap::new();
        read_texts(catalog, "", &mut files)?;
        let metas = relevant_metas(&files, package, &pushed)?;
        let new_references = new_references_of(&metas, &pushed);
        let mut image = catalog_image_from_dir(catalog);
        for (path, text) in &files {
            if let Some(text) = replace_images(text, &new_references) {
                image = image.file(format!("configs/{path}"), text);
            }
        }
        image
            .push(registry, "catalogs/given:v1")
            .await
            .context("cannot push the catalog")?;
        let reference = format!("{}/catalogs/given:v1", registry.host());
        console.line(&format!(
            "pushed the catalog of {} files, {} images moved",
            files.len(),
            new_references.len()
        ));

        let content = PackageContent::from_metas(package, metas)
            .with_context(|| format!("the catalog's package {package} cannot be used"))?;
        let path = graph::path(&content, |bundle| pushed.contains_key(&bundle.name))?;
        let first = path.first().and_then(|target| pushed.get(&target.name));
        let modes = match first {
            Some((dir, _)) => csv_of(dir)?.1,
            None => Value::Null,
        };
        let watch_namespace = watch_namespace(&modes);
        let other_namespace = watch_namespace.clone().filter(|name| name != super::NAMESPACE);
        let targets = path.into_iter().map(|target| Target {
            catalog: reference.clone(),
            pin: Some(target.version.clone()),
            version: target.version,
        });
        let targets: Vec<Target> = targets.collect();
        let versions: Vec<&str> = targets.iter().map(|target| target.version.as_str()).collect();
        console.line(&format!("the way through the graph: {}", versions.join(" -> ")));
        Ok(Self {
            package: package.to_owned(),
            channels: Vec::new(),
            watch_namespace,
            other_namespace,
            targets,
        })
    }
}

/// Builds the image of an edition of the sample catalog, with its bundles at this registry.
///
/// # Errors
/// The test data is unreadable.
fn sample_catalog(edition: &str, host: &str) -> Result<ImageBuilder> {
    let path = workspace::testdata()
        .join("sample-catalog")
        .join(edition)
        .join("catalog.yaml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let label = "operators.operatorframework.io.index.configs.v1";
    Ok(ImageBuilder::new()
        .label(label, "/configs")
        .file("configs/catalog.yaml", text.replace("{registry}", host)))
}

/// Returns the namespace to watch if the operator cannot watch all namespaces.
fn watch_namespace(install_modes: &Value) -> Option<String> {
    let supported = |mode: &str| {
        install_modes.as_array().into_iter().flatten().any(|entry| {
            entry.get("type").and_then(Value::as_str) == Some(mode)
                && entry.get("supported").and_then(Value::as_bool) == Some(true)
        })
    };
    if supported("AllNamespaces") {
        None
    } else if supported("OwnNamespace") {
        Some(super::NAMESPACE.to_owned())
    } else {
        supported("SingleNamespace").then(|| format!("{}-watched", super::NAMESPACE))
    }
}

fn find_bundles(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    if dir.join("manifests").is_dir() && dir.join("metadata").is_dir() {
        found.push(dir.to_owned());
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    for path in sorted(dir)? {
        if path.is_dir() {
            find_bundles(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

fn sorted(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Returns the name of the bundle's `ClusterServiceVersion` and its install modes.
fn csv_of(dir: &Path) -> Result<(String, Value)> {
    for path in sorted(&dir.join("manifests"))? {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        if !text.contains("ClusterServiceVersion") {
            continue;
        }
        let Ok(csv) = serde_saphyr::from_str::<Value>(&text) else {
            continue;
        };
        if csv.get("kind").and_then(Value::as_str) == Some("ClusterServiceVersion") {
            let name = csv
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            return Ok((
                name.to_owned(),
                csv.pointer("/spec/installModes").cloned().unwrap_or_default(),
            ));
        }
    }
    bail!("no ClusterServiceVersion in {}", dir.join("manifests").display())
}

fn read_texts(dir: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> Result<()> {
    for path in sorted(dir)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let inside = if prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{prefix}/{name}")
        };
        if path.is_dir() {
            read_texts(&path, &inside, files)?;
        } else if let Ok(text) = fs::read_to_string(&path) {
            files.insert(inside, text);
        }
    }
    Ok(())
}

/// Returns the metas of all files that mention the package or a pushed bundle.
fn relevant_metas(
    files: &BTreeMap<String, String>,
    package: &str,
    pushed: &BTreeMap<String, (PathBuf, String)>,
) -> Result<Vec<Meta>> {
    let mut metas = Vec::new();
    for (path, text) in files {
        let catalog_file = [".yaml", ".yml", ".json"]
            .iter()
            .any(|ending| path.ends_with(ending));
        let is_relevant = text.contains(package) || pushed.keys().any(|name| text.contains(name));
        if !catalog_file || !is_relevant {
            continue;
        }
        for meta in decode(text.as_bytes(), &Limits::default()) {
            let meta = meta.with_context(|| format!("{path} is no file-based catalog"))?;
            if meta.package == package || meta.name == package || pushed.contains_key(&meta.name) {
                metas.push(meta);
            }
        }
    }
    Ok(metas)
}

/// Returns the new references of the images in the catalog.
fn new_references_of(
    metas: &[Meta],
    pushed: &BTreeMap<String, (PathBuf, String)>,
) -> BTreeMap<String, String> {
    let mut new_references = BTreeMap::new();
    for meta in metas.iter().filter(|meta| meta.schema == schema::BUNDLE) {
        let Some((_, now)) = pushed.get(&meta.name) else {
            continue;
        };
        let Ok(bundle) = serde_json::from_slice::<Value>(&meta.blob) else {
            continue;
        };
        if let Some(image) = bundle
            .get("image")
            .and_then(Value::as_str)
            .filter(|image| !image.is_empty())
        {
            new_references.insert(image.to_owned(), now.clone());
        }
    }
    new_references
}

/// Replaces each image by its new reference; returns `None` if the text has none of them.
fn replace_images(text: &str, new_references: &BTreeMap<String, String>) -> Option<String> {
    let mut changed: Option<String> = None;
    for (old, new) in new_references {
        let current = changed.as_deref().unwrap_or(text);
        if current.contains(old.as_str()) {
            changed = Some(replace_whole(current, old, new));
        }
    }
    changed
}

/// Replaces whole occurrences of `old`: `a:1.2` is not part of `a:1.25`.
fn replace_whole(text: &str, old: &str, new: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(old) {
        let continues = after.starts_with(|c: char| c.is_ascii_alphanumeric() || "._-+@:/".contains(c));
        result.push_str(before);
        result.push_str(if continues { old } else { new });
        rest = after;
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_replaced_whole() {
        let text = "image: a/b:1.2\nimage: a/b:1.25\nimage: \"a/b:1.2\"\n";
        let changed = replace_whole(text, "a/b:1.2", "c/d@e");
        assert_eq!(changed, "image: c/d@e\nimage: a/b:1.25\nimage: \"c/d@e\"\n");
    }

    #[test]
    fn the_sample_is_a_catalog_of_its_bundles() {
        for edition in ["first", "second"] {
            let path = workspace::testdata()
                .join("sample-catalog")
                .join(edition)
                .join("catalog.yaml");
            let text = fs::read_to_string(path).unwrap();
            let metas: Vec<Meta> = decode(text.as_bytes(), &Limits::default())
                .map(Result::unwrap)
                .collect();
            let content = PackageContent::from_metas(SAMPLE, metas).unwrap();
            assert!(content.package.is_some());
            for bundle in &content.bundles {
                let version = bundle.version_release(false).unwrap().to_string();
                let dir = workspace::testdata().join(SAMPLE).join(&version);
                assert_eq!(csv_of(&dir).unwrap().0, bundle.name);
            }
        }
    }
}
