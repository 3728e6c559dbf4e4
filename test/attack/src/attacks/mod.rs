//! Attacks on the controllers by content, with one module for each class of attacks.

mod bundles;
mod catalogs;
mod layers;
mod registries;

use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};
use olm_harness::stub::Image;
use serde_json::json;

use crate::{Case, Scale};

/// Label of a catalog image with the directory of the catalog.
pub(crate) const CONFIGS_LABEL: (&str, &str) =
    ("operators.operatorframework.io.index.configs.v1", "/configs");

/// Labels of a bundle image.
pub(crate) const BUNDLE_LABELS: [(&str, &str); 3] = [
    (
        "operators.operatorframework.io.bundle.mediatype.v1",
        "registry+v1",
    ),
    ("operators.operatorframework.io.bundle.manifests.v1", "manifests/"),
    ("operators.operatorframework.io.bundle.metadata.v1", "metadata/"),
];
/// Name of the package that extensions install, in every bundle and catalog.
pub(crate) const PACKAGE: &str = "hostile";

/// Returns all attacks of a scale, by class.
///
/// # Errors
/// The creation of content fails.
pub fn all(scale: Scale) -> Result<Vec<(&'static str, Vec<Case>)>> {
    Ok(vec![
        ("layers", layers::cases(scale)?),
        ("catalogs", catalogs::cases(scale)),
        ("bundles", bundles::cases(scale)),
        ("registries", registries::cases(scale)),
    ])
}

/// Returns the attacks of registries that lie, redirect or send slowly.
pub fn registries(scale: Scale) -> Vec<Case> {
    registries::cases(scale)
}

/// Returns the image of a catalog with this layer, whose folder `configs` has the catalog.
pub fn catalog_image(layer: &[u8]) -> Image {
    Image::labelled(layer.to_vec(), &[CONFIGS_LABEL])
}

/// Returns the image of a bundle with these files, gzipped.
pub(crate) fn bundle_image(files: &[(&str, &[u8])]) -> Image {
    let annotations =
        format!("annotations:\n  operators.operatorframework.io.bundle.package.v1: {PACKAGE}\n");
    let all = files
        .iter()
        .copied()
        .chain([("metadata/annotations.yaml", annotations.as_bytes())]);
    Image::labelled(gzip(&plain_layer(all)), &BUNDLE_LABELS)
}

/// Returns a valid catalog with one package, whose only bundle has the image `bundle`.
pub(crate) fn catalog_text(bundle: &str) -> String {
    let metas = [
        json!({"schema": "olm.package", "name": PACKAGE, "defaultChannel": "stable"}),
        json!({"schema": "olm.channel", "package": PACKAGE, "name": "stable",
               "entries": [{"name": format!("{PACKAGE}.1.0.0")}]}),
        json!({"schema": "olm.bundle", "package": PACKAGE, "name": format!("{PACKAGE}.1.0.0"), "image": bundle,
               "properties": [{"type": "olm.package", "value": {"packageName": PACKAGE, "version": "1.0.0"}}]}),
    ];
    metas.map(|meta| meta.to_string()).join("\n")
}

/// Returns an uncompressed layer of files.
pub fn plain_layer<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        // Writing to memory does not fail.
        let _ = archive.append_data(&mut header, name, content);
    }
    archive.into_inner().unwrap_or_default()
}

/// Compresses bytes with gzip at the best level.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let _ = gzip.write_all(bytes);
    gzip.finish().unwrap_or_default()
}
