//! Publishes real content: the complete catalog, and the available bundles.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use olm_harness::{ImageBuilder, Registry};
use serde_json::json;

use crate::plan::PLANS;

/// Repository of the bundles in the real catalog.
pub(crate) const HOME: &str = "quay.io/community-operator-pipeline-prod";
/// Path of that repository in the local registry.
pub(crate) const MIRROR: &str = "community-operator-pipeline-prod";

/// Pushes the catalog of all packages; returns its reference.
pub(crate) async fn catalog(vectors: &Path, registry: &Registry) -> anyhow::Result<String> {
    let image = ImageBuilder::new()
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .dir_at(vectors.join("catalogs/medium"), "configs")
        .dir_at(vectors.join("catalogs/rest"), "configs");
    push(image, registry, "catalogs/community:v4.21").await
}

/// Pushes a catalog of the package that the real catalog lacks, with the available versions.
pub(crate) async fn extra_catalog(
    vectors: &Path,
    registry: &Registry,
    package: &str,
) -> anyhow::Result<String> {
    let mut metas = vec![json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"})];
    let mut entries = Vec::new();
    let mut previous: Option<String> = None;
    for folder in sorted(&vectors.join("bundles").join(package))? {
        let version = folder
            .file_name()
            .context("a version has a name")?
            .to_string_lossy()
            .into_owned();
        let name = format!("{package}.v{version}");
        entries.push(json!({"name": name, "replaces": previous}));
        metas.push(json!({
            "schema": "olm.bundle", "package": package, "name": name, "image": format!("{HOME}/{package}:{version}"),
            "properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}}],
        }));
        previous = Some(name);
    }
    for entry in &mut entries {
        if entry["replaces"].is_null() {
            *entry = json!({"name": entry["name"]});
        }
    }
    metas.push(json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries}));
    let file: String = metas
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n");
    let image = ImageBuilder::new()
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .file("configs/catalog.json", file);
    push(image, registry, &format!("catalogs/{package}:v1")).await
}

/// Pushes every version of the plans' bundles.
pub(crate) async fn bundles(vectors: &Path, registry: &Registry) -> anyhow::Result<()> {
    for plan in &PLANS {
        for version in plan.versions {
            let folder = bundle_folder(vectors, plan.package, version);
            let image = olm_harness::bundle_image_from_dir(&folder)?;
            push(image, registry, &format!("{MIRROR}/{}:{version}", plan.package)).await?;
        }
    }
    Ok(())
}

fn bundle_folder(vectors: &Path, package: &str, version: &str) -> PathBuf {
    let released = vectors.join("bundles").join(package).join(version);
    if released.is_dir() {
        released
    } else {
        vectors
            .join("render")
            .join(format!("{package}--{version}/bundle"))
    }
}

async fn push(image: ImageBuilder, registry: &Registry, repository: &str) -> anyhow::Result<String> {
    image
        .push(registry, repository)
        .await
        .with_context(|| format!("cannot push {repository}"))?;
    Ok(format!("{}/{repository}", registry.host()))
}

fn sorted(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    Ok(entries)
}
