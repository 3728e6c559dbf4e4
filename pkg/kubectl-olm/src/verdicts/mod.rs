//! Verdicts on the edges of an upgrade graph: CRD safety, rights gained, images.
//!
//! Bundles come from folders or images. Verdicts are kept in the user's cache by the digests of both bundles.

mod bundles;
mod cache;
mod edge;

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, TryStreamExt as _};
use olm_fbc::PackageContent;
use olm_graph::Graph;

use crate::cli::GraphArgs;
use crate::failure::Failure;
use crate::source::SourceError;
use bundles::Place;
use cache::Cache;
pub(crate) use edge::rendered;

/// Maximum number of edges with a verdict: `replaces` first, then `skips`, then skip ranges.
const EDGES: usize = 2000;
/// Maximum number of comparisons at a time.
const PARALLEL: usize = 8;

/// Adds a verdict to each edge of the graph. A bundle that cannot be read has a verdict that says so.
pub(crate) async fn annotate(
    graph: &mut Graph,
    content: &PackageContent,
    args: &GraphArgs,
) -> Result<(), Failure> {
    let mut edges = graph.edges();
    graph.not_annotated = edges.len().saturating_sub(EDGES);
    edges.truncate(EDGES);
    let mut places: BTreeMap<usize, Place> = BTreeMap::new();
    let positions: BTreeSet<usize> = edges.iter().flat_map(|(from, to)| [*from, *to]).collect();
    for position in positions {
        let place = bundles::find(graph, position, content, args).await;
        places.insert(position, place);
    }
    let cache = Cache::open();
    let parallel = std::thread::available_parallelism().map_or(1, usize::from);
    let comparisons = edges.into_iter().map(|(from, to)| {
        let (old, new) = (places.get(&from).cloned(), places.get(&to).cloned());
        let cache = cache.clone();
        async move {
            let work = move || edge::verdict(old.as_ref(), new.as_ref(), &cache);
            let verdict = tokio::task::spawn_blocking(work).await;
            verdict
                .map(|verdict| ((from, to), verdict))
                .map_err(|_| SourceError::Interrupted {
                    place: "the bundles of the package".to_owned(),
                })
        }
    });
    graph.verdicts = futures::stream::iter(comparisons)
        .buffer_unordered(parallel.min(PARALLEL))
        .try_collect()
        .await?;
    Ok(())
}
