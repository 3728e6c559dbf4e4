//! Content of a scenario: a catalog and three bundles, made from those of the end-to-end tests.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use olm_e2e::content::{Keyword, Row, bundle_files, bundle_name, bundle_repository, package_name};
use olm_harness::{ImageBuilder, Registry};
use serde_json::{Value, json};

use super::Version;

/// Beginning of the name of the package.
const PACKAGE: &str = "test";
/// Path of the ClusterServiceVersion in a bundle.
const CSV: &str = "manifests/csv.yaml";

/// Returns the name of the scenario's package.
pub(super) fn package(id: &str) -> String {
    package_name(PACKAGE, id)
}

/// Pushes the bundles of all versions and their catalog. Returns the reference of the catalog's image. `host` is the address at
/// which the controllers reach the registry.
pub(super) async fn push(registry: &Registry, host: &str, id: &str) -> Result<String> {
    for version in Version::ALL {
        let mut image = ImageBuilder::new();
        for (path, bytes) in files(version, id)? {
            image = image.file(path, bytes);
        }
        let repository = bundle_repository(&package(id), version.number());
        image.push(registry, &repository).await?;
    }
    let repository = format!("faults/catalog-{id}:v1");
    ImageBuilder::new()
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .file("configs/catalog.json", catalog(id, host))
        .push(registry, &repository)
        .await?;
    Ok(format!("{host}/{repository}"))
}

/// Returns the files of a bundle of the end-to-end tests, changed so that its Deployment and its permissions differ between
/// versions.
fn files(version: Version, id: &str) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut contents = vec![Keyword::Deployment, Keyword::ConfigMap];
    contents.push(match version {
        Version::V1 | Version::V2 => Keyword::Crd,
        Version::V3 => Keyword::WideCrd,
    });
    if version == Version::V1 {
        contents.push(Keyword::ExtraConfigMap);
    }
    let row = Row {
        package: PACKAGE.to_owned(),
        version: version.number().to_owned(),
        channel: "stable".to_owned(),
        replaces: String::new(),
        contents,
    };
    let mut files = bundle_files(&row, id);
    let csv = files.get(CSV).context("a bundle without ClusterServiceVersion")?;
    let mut csv: Value = serde_json::from_slice(csv)?;
    let spec = csv
        .pointer_mut("/spec/install/spec")
        .context("a bundle without install strategy")?;
    spec["deployments"][0]["spec"]["template"]["metadata"]["annotations"] =
        json!({"version": version.number()});
    spec["permissions"][0]["rules"][0]["resourceNames"] = json!([version.number()]);
    files.insert(CSV.to_owned(), csv.to_string().into_bytes());
    Ok(files)
}

/// Returns the catalog. Version 1.0.2 is a successor of 1.0.1 and, directly, of 1.0.0.
fn catalog(id: &str, registry: &str) -> String {
    let package = package(id);
    let name = |version: Version| bundle_name(&package, version.number());
    let mut metas = vec![
        json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": [
            {"name": name(Version::V1)},
            {"name": name(Version::V2), "replaces": name(Version::V1)},
            {"name": name(Version::V3), "replaces": name(Version::V2), "skips": [name(Version::V1)]},
        ]}),
    ];
    metas.extend(Version::ALL.map(|version| {
        json!({"schema": "olm.bundle", "package": package, "name": name(version),
            "image": format!("{registry}/{}", bundle_repository(&package, version.number())),
            "properties": [{"type": "olm.package", "value": {"packageName": package, "version": version.number()}}]})
    }));
    let lines: Vec<String> = metas.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
