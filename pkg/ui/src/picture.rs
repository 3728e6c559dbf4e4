//! Picture of the upgrade graph of a package.

use olm_fbc::PackageContent;
use olm_graph::{build, svg};
use olm_text::name::CatalogName;

/// Maximum numbers of bundles, and of entries of channels with their edges, in a picture.
const BUNDLES: usize = 1500;
const EDGES: usize = 10_000;

/// Returns true if the package has a graph that a picture can show.
pub fn has_picture(content: &PackageContent) -> bool {
    let entries = content.channels.iter().flat_map(|channel| &channel.entries);
    let edges: usize = entries.map(|entry| 1 + entry.skips.len()).sum();
    edges > 0 && edges <= EDGES && content.bundles.len() <= BUNDLES
}

/// Returns the upgrade graph as an SVG document; none if there is none, or if it is too large for a picture.
pub fn picture(catalog: &CatalogName, content: &PackageContent) -> Option<String> {
    has_picture(content).then(|| svg(&build(catalog, content, &[])))
}
