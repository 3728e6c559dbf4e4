//! Present ClusterCatalogs, from the watch.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::core::DynamicObject;
use kube::runtime::watcher::Event;
use olm_api::ClusterCatalog;
use parking_lot::Mutex;

use crate::decode::decode;

type ByName = BTreeMap<String, ClusterCatalog>;

/// The ClusterCatalogs. The watch writes, reconciles read.
#[derive(Default)]
pub(crate) struct Listing(Mutex<ListedCatalogs>);

#[derive(Default)]
struct ListedCatalogs {
    /// `None` until the first list is complete.
    current: Option<ByName>,
    /// Catalogs of a list that is not complete yet.
    next: ByName,
}

impl Listing {
    /// Returns all catalogs in the order of their names; `None` before the first list.
    pub(crate) fn all(&self) -> Option<Vec<ClusterCatalog>> {
        Some(self.0.lock().current.as_ref()?.values().cloned().collect())
    }

    /// Applies an event of the watch.
    pub(crate) fn take(&self, event: &Event<DynamicObject>) {
        let mut known = self.0.lock();
        match event {
            Event::Init => known.next.clear(),
            Event::InitApply(catalog) => put(&mut known.next, catalog),
            Event::InitDone => known.current = Some(std::mem::take(&mut known.next)),
            Event::Apply(catalog) => {
                if let Some(current) = &mut known.current {
                    put(current, catalog);
                }
            }
            Event::Delete(catalog) => {
                if let Some(current) = &mut known.current {
                    current.remove(&catalog.name_any());
                }
            }
        }
    }
}

/// Adds or replaces a catalog; removes one that cannot be decoded.
fn put(catalogs: &mut ByName, catalog: &DynamicObject) {
    let name = catalog.name_any();
    match decode::<ClusterCatalog>(catalog) {
        Some(mut decoded) => {
            decoded.metadata.managed_fields = None;
            catalogs.insert(name, decoded);
        }
        None => drop(catalogs.remove(&name)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalog(name: &str, priority: &serde_json::Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": name},
            "spec": {"priority": priority, "source": {"type": "Image", "image": {"ref": "example.com/a:1"}}},
        }))
        .unwrap()
    }

    #[test]
    fn follows_the_watch() {
        let listing = Listing::default();
        let names = || {
            listing.all().map(|all| {
                all.iter()
                    .map(ClusterCatalog::name_any)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        listing.take(&Event::Init);
        listing.take(&Event::InitApply(catalog("b", &json!(1))));
        assert_eq!(names(), None);
        listing.take(&Event::InitDone);
        assert_eq!(names().as_deref(), Some("b"));
        listing.take(&Event::Apply(catalog("a", &json!(1))));
        listing.take(&Event::Apply(catalog("odd", &json!("high"))));
        assert_eq!(names().as_deref(), Some("a b"));
        listing.take(&Event::Delete(catalog("b", &json!(1))));
        assert_eq!(names().as_deref(), Some("a"));
        listing.take(&Event::Init);
        assert_eq!(
            names().as_deref(),
            Some("a"),
            "the old one is good until the new is whole"
        );
        listing.take(&Event::InitDone);
        assert_eq!(names().as_deref(), Some(""));
    }
}
