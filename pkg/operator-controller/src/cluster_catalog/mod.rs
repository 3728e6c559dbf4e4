//! What of catalogs matters to extensions: a stream of the moments at which a resolution may come out differently.
//!
//! Polls that find nothing new, and everything else a catalog's status says, pass silently.

mod listing;

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use futures::{Stream, StreamExt as _, future};
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use olm_api::ClusterCatalog;
use serde_json::Value;

use olm_catalog_client::CatalogClient;

pub(crate) use listing::Listing;

/// Watches the catalogs: an item for each change that matters; `listing` follows, content of a catalog that is gone is dropped from
/// `catalogs`.
pub(crate) fn changes(
    client: Client,
    catalogs: Arc<CatalogClient>,
    listing: Arc<Listing>,
) -> impl Stream<Item = ()> + Send + 'static {
    // Untyped, so that one odd catalog cannot stop the watch of all.
    let kind = ApiResource::erase::<ClusterCatalog>(&());
    let api: Api<DynamicObject> = Api::all_with(client, &kind);
    let mut seen = Seen::default();
    watcher(api, watcher::Config::default())
        .default_backoff()
        .filter_map(move |event| {
            let told = match event {
                Ok(event) => {
                    // Before anybody is told to look.
                    listing.take(&event);
                    let (changed, gone) = seen.take(event);
                    for catalog in &gone {
                        catalogs.forget(catalog);
                    }
                    changed.then_some(())
                }
                Err(error) => {
                    tracing::warn!(%error, "watching the ClusterCatalogs failed; trying again");
                    None
                }
            };
            future::ready(told)
        })
}

/// What is known of every catalog, as one hash each.
#[derive(Default)]
struct Seen {
    known: HashMap<String, u64>,
    /// Those met in a listing that is going on.
    listed: HashSet<String>,
}

impl Seen {
    /// Whether `event` changes anything that matters, and which catalogs are gone.
    fn take(&mut self, event: Event<DynamicObject>) -> (bool, Vec<String>) {
        match event {
            Event::Init => {
                self.listed.clear();
                (false, Vec::new())
            }
            Event::InitApply(catalog) => {
                self.listed.insert(catalog.name_any());
                (self.differs(&catalog), Vec::new())
            }
            Event::Apply(catalog) => (self.differs(&catalog), Vec::new()),
            Event::Delete(catalog) => {
                let name = catalog.name_any();
                self.known.remove(&name);
                (true, vec![name])
            }
            // Deletions that happened while the watch was down.
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let gone: Vec<String> = self
                    .known
                    .keys()
                    .filter(|name| !listed.contains(*name))
                    .cloned()
                    .collect();
                self.known.retain(|name, _| listed.contains(name));
                (!gone.is_empty(), gone)
            }
        }
    }

    fn differs(&mut self, catalog: &DynamicObject) -> bool {
        let hash = hash(catalog);
        self.known.insert(catalog.name_any(), hash) != Some(hash)
    }
}

fn hash(catalog: &DynamicObject) -> u64 {
    let mut hasher = DefaultHasher::new();
    catalog.labels().hash(&mut hasher);
    let at = |pointer: &str| catalog.data.pointer(pointer).map(Value::to_string);
    for pointer in [
        "/spec/priority",
        "/spec/availabilityMode",
        "/status/resolvedSource",
        "/status/urls/base",
    ] {
        at(pointer).hash(&mut hasher);
    }
    let conditions = catalog
        .data
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    let serving = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some("Serving"));
    serving
        .and_then(|condition| condition.get("status"))
        .map(Value::to_string)
        .hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn catalog(name: &str, digest: &str, polled: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": name},
            "spec": {"priority": 1},
            "status": {"resolvedSource": {"type": "Image", "image": {"ref": digest}}, "lastUnpacked": polled,
                "conditions": [{"type": "Serving", "status": "True"}]},
        }))
        .unwrap()
    }

    #[test]
    fn only_what_matters_counts() {
        let mut seen = Seen::default();
        assert_eq!(seen.take(Event::Apply(catalog("a", "x", "1"))), (true, vec![]));
        assert_eq!(seen.take(Event::Apply(catalog("a", "x", "2"))), (false, vec![]));
        assert_eq!(seen.take(Event::Apply(catalog("a", "y", "2"))), (true, vec![]));
        assert_eq!(
            seen.take(Event::Delete(catalog("a", "y", "2"))),
            (true, vec!["a".into()])
        );
    }

    #[test]
    fn a_deletion_that_was_missed_is_found_by_the_next_listing() {
        let mut seen = Seen::default();
        seen.take(Event::Init);
        seen.take(Event::InitApply(catalog("a", "x", "1")));
        seen.take(Event::InitApply(catalog("b", "x", "1")));
        assert_eq!(seen.take(Event::InitDone), (false, vec![]));
        seen.take(Event::Init);
        assert_eq!(
            seen.take(Event::InitApply(catalog("b", "x", "1"))),
            (false, vec![])
        );
        assert_eq!(seen.take(Event::InitDone), (true, vec!["a".into()]));
    }
}
