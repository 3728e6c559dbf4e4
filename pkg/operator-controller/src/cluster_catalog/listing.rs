//! Present ClusterCatalogs, from the watch.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::core::DynamicObject;
use kube::runtime::watcher::Event;
use olm_api::ClusterCatalog;
use parking_lot::Mutex;

use crate::decode::decode;

type ByName = BTreeMap<String, Result<ClusterCatalog, Undecodable>>;

/// A catalog that this version cannot decode, for example one with a value that only a later version knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Undecodable {
    /// Name.
    pub name: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Priority; 0 if that is what cannot be decoded.
    pub priority: i32,
}

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
    /// Returns all catalogs that can be decoded, in the order of their names; `None` before the first list.
    pub(crate) fn all(&self) -> Option<Vec<ClusterCatalog>> {
        let known = self.0.lock();
        let decoded = known.current.as_ref()?.values().flatten();
        Some(decoded.cloned().collect())
    }

    /// Returns the other catalogs, in the order of their names. They exist, so no extension may leave them as if they were deleted.
    pub(crate) fn undecodable(&self) -> Vec<Undecodable> {
        let known = self.0.lock();
        let all = known.current.iter().flat_map(BTreeMap::values);
        all.filter_map(|catalog| catalog.as_ref().err().cloned())
            .collect()
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

/// Adds or replaces a catalog.
fn put(catalogs: &mut ByName, catalog: &DynamicObject) {
    let name = catalog.name_any();
    let decoded = match decode::<ClusterCatalog>(catalog) {
        Some(mut decoded) => {
            decoded.metadata.managed_fields = None;
            Ok(decoded)
        }
        None => Err(Undecodable {
            name: name.clone(),
            labels: catalog.labels().clone(),
            priority: priority(catalog).unwrap_or_default(),
        }),
    };
    catalogs.insert(name, decoded);
}

fn priority(catalog: &DynamicObject) -> Option<i32> {
    let priority = catalog.data.pointer("/spec/priority")?.as_i64()?;
    priority.try_into().ok()
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
        let odd = |priority: i32| Undecodable {
            name: "odd".to_owned(),
            labels: BTreeMap::new(),
            priority,
        };
        assert_eq!(listing.undecodable(), [odd(0)], "it exists all the same");
        let mut later = catalog("odd", &json!(7));
        later.data["spec"]["source"]["type"] = json!("Later");
        listing.take(&Event::Apply(later));
        assert_eq!(listing.undecodable(), [odd(7)]);
        listing.take(&Event::Apply(catalog("odd", &json!(7))));
        assert_eq!(
            (names().as_deref(), listing.undecodable()),
            (Some("a b odd"), Vec::new())
        );
        listing.take(&Event::Delete(catalog("odd", &json!(7))));
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
