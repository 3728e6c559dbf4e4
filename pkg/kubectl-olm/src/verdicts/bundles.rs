//! Places of the bundles of a graph.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use olm_fbc::PackageContent;
use olm_graph::Graph;
use sha2::{Digest as _, Sha256};

use crate::cli::GraphArgs;
use crate::source::bundle_root_of_image;

/// Place of a bundle.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Directory, and the reference by digest of the image that it comes from.
    Found { root: PathBuf, image: Option<String> },
    /// The bundle cannot be read, for this reason.
    Missing(String),
}

/// Finds a bundle: below the directory of `--bundles`, by version or name, or else by the image in the catalog.
pub(super) async fn find(
    graph: &Graph,
    position: usize,
    content: &PackageContent,
    args: &GraphArgs,
) -> Place {
    let Some(node) = graph.node(position) else {
        return Place::Missing("the catalog does not have it".to_owned());
    };
    if let Some(dir) = &args.bundles {
        let names = [node.label.as_str(), node.name.as_str()];
        let is_plain =
            |name: &&str| !name.is_empty() && !name.contains(['/', '\\']) && !name.starts_with('.');
        let folders = names
            .into_iter()
            .filter(is_plain)
            .flat_map(|name| [dir.join(graph.package.as_str()).join(name), dir.join(name)]);
        let found = folders
            .into_iter()
            .find(|folder| folder.join("manifests").is_dir());
        return match found {
            Some(root) => Place::Found { root, image: None },
            None => Place::Missing(format!(
                "{} has neither a folder {} nor {}",
                dir.display(),
                node.label,
                node.name
            )),
        };
    }
    let bundle = content
        .bundles
        .iter()
        .find(|bundle| bundle.name == node.name.as_str());
    match bundle
        .map(|bundle| bundle.image.as_str())
        .filter(|image| !image.is_empty())
    {
        None => Place::Missing("the catalog names no image".to_owned()),
        Some(image) => match bundle_root_of_image(image, &args.source.access).await {
            Ok((root, image)) => Place::Found {
                root,
                image: Some(image),
            },
            Err(error) => Place::Missing(olm_text::chain(&error)),
        },
    }
}

/// Reads the files of a bundle.
pub(super) fn read(root: &Path) -> Result<BTreeMap<String, Vec<u8>>, String> {
    olm_bundle_files::read(root).map_err(|error| olm_text::chain(&error))
}

/// Returns the digest of a bundle: that of its image, or of its files.
pub(super) fn digest(image: Option<&str>, files: &BTreeMap<String, Vec<u8>>) -> String {
    if let Some((_, digest)) = image.and_then(|image| image.rsplit_once('@')) {
        return digest.to_owned();
    }
    let mut all = Sha256::new();
    for (path, bytes) in files {
        for part in [path.as_bytes(), bytes] {
            all.update(part.len().to_be_bytes());
            all.update(part);
        }
    }
    format!("files:{}", HEXLOWER.encode(&all.finalize()))
}
