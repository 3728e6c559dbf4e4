//! The attacks, a module for each class.

mod bundles;
mod catalogs;
mod layers;
mod registries;

use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};
use olm_harness::stub::Image;

use crate::{Case, Scale};

/// Label of a catalog's image that names the directory of the catalog.
const CONFIGS_LABEL: (&str, &str) = ("operators.operatorframework.io.index.configs.v1", "/configs");

/// All attacks of a scale, by class.
///
/// # Errors
/// When content cannot be made.
pub fn all(scale: Scale) -> Result<Vec<(&'static str, Vec<Case>)>> {
    Ok(vec![
        ("layers", layers::cases(scale)?),
        ("catalogs", catalogs::cases(scale)),
        ("bundles", bundles::cases(scale)),
        ("registries", registries::cases(scale)),
    ])
}

/// An image of a layer whose `configs` is a catalog.
pub(crate) fn catalog_image(layer: &[u8]) -> Image {
    Image::labelled(layer.to_vec(), &[CONFIGS_LABEL])
}

/// An uncompressed layer of files.
pub(crate) fn plain_layer<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
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

/// Bytes, gzipped as densely as can be.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let _ = gzip.write_all(bytes);
    gzip.finish().unwrap_or_default()
}
