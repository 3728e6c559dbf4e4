//! Changes of catalogs that can change a resolution.
//!
//! Polls without a change, and other parts of a catalog's status, cause no item.

mod listing;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use futures::{Stream, StreamExt as _, future};
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt as _};
use olm_api::ClusterCatalog;
use olm_api::condition::{types::Catalog as Type, untyped};
use serde_json::Value;

use olm_catalog_client::Catalogs;

pub(crate) use listing::{Listing, Undecodable};

use crate::present::Present;

/// Watches the catalogs and yields an item for each change that can change a resolution. Updates `listing`, and drops the content
/// of deleted catalogs from `catalogs`.
pub(crate) fn changes(
    client: Client,
    catalogs: Arc<dyn Catalogs>,
    listing: Arc<Listing>,
) -> impl Stream<Item = ()> + Send + 'static {
    // Untyped, so that a malformed catalog does not stop the watch.
    let kind = ApiResource::erase::<ClusterCatalog>(&());
    let api: Api<DynamicObject> = Api::all_with(client, &kind);
    // Hash of the relevant fields, by catalog.
    let mut seen = Present::default();
    watcher(api, watcher::Config::default())
        .default_backoff()
        .filter_map(move |event| {
            let told = match event {
                Ok(event) => {
                    // Dropped before the change is announced.
                    listing.take(&event);
                    let change = seen.take(&event, |catalog| (catalog.name_any(), hash(catalog)));
                    for (catalog, _) in &change.gone {
                        catalogs.forget(&catalog.as_str().into());
                    }
                    (change.differs || !change.gone.is_empty()).then_some(())
                }
                Err(error) => {
                    tracing::warn!(%error, "watching the ClusterCatalogs failed; trying again");
                    None
                }
            };
            future::ready(told)
        })
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
    let serving = untyped::find(&catalog.data, Type::Serving);
    serving.and_then(|condition| condition.status).hash(&mut hasher);
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
        let first = hash(&catalog("a", "x", "1"));
        assert_eq!(hash(&catalog("a", "x", "2")), first);
        assert_ne!(hash(&catalog("a", "y", "2")), first);
    }
}
