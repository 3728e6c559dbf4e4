//! What the watches last told of extensions and their revisions, so that a reconcile that finds nothing new asks the API server
//! nothing.
//!
//! Invariant: nothing is answered from a store that is older than what was written from here; then the API server is asked.

use std::collections::HashMap;

use futures::FutureExt as _;
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt as _};
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_applier::watch::is_older;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

/// Where the watches write to.
pub(crate) struct Writers {
    pub extensions: Writer<DynamicObject>,
    pub revisions: Writer<DynamicObject>,
}

/// What the watches have written.
pub(crate) struct Stores {
    extensions: Store<DynamicObject>,
    revisions: Store<DynamicObject>,
    written: Mutex<HashMap<String, Written>>,
}

/// The newest versions written from here for one extension.
#[derive(Debug, Default)]
struct Written {
    extension: Option<String>,
    /// Name and version of a revision.
    revision: Option<(String, String)>,
}

/// The kind of an API type, for untyped access.
pub(crate) fn kind<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

impl Stores {
    /// Empty ones, and their writers.
    pub(crate) fn new() -> (Self, Writers) {
        let writers = Writers {
            extensions: Writer::new(kind::<ClusterExtension>()),
            revisions: Writer::new(kind::<ClusterObjectSet>()),
        };
        let stores = Self {
            extensions: writers.extensions.as_reader(),
            revisions: writers.revisions.as_reader(),
            written: Mutex::default(),
        };
        (stores, writers)
    }

    /// The store of extensions, as the controller's queue needs it.
    pub(crate) fn of_extensions(&self) -> Store<DynamicObject> {
        self.extensions.clone()
    }

    /// The extension `name`; `None` when the API server must be asked.
    pub(crate) fn extension(&self, name: &str) -> Option<ClusterExtension> {
        let reference = ObjectRef::new_with(name, kind::<ClusterExtension>());
        let object = self.extensions.get(&reference)?;
        let written = self.written.lock();
        let newest = written.get(name).and_then(|written| written.extension.clone());
        drop(written);
        fresh(&object, newest.as_deref())
            .then(|| typed(&object))
            .flatten()
    }

    /// The revisions that name the extension as their owner, in no particular order; `None` when the API server must be asked.
    pub(crate) fn revisions(&self, extension: &str) -> Option<Vec<ClusterObjectSet>> {
        let ready = self.revisions.wait_until_ready().now_or_never();
        if ready.is_none_or(|ready| ready.is_err()) {
            return None;
        }
        let found = self.revisions.state_filter(|object| {
            let labels = object.labels();
            labels.get(keys::OWNER_NAME_LABEL).map(String::as_str) == Some(extension)
        });
        let written = self.written.lock();
        let newest = written
            .get(extension)
            .and_then(|written| written.revision.clone());
        drop(written);
        if let Some((name, version)) = newest {
            let seen = found.iter().find(|object| object.name_any() == name)?;
            if !fresh(seen, Some(&version)) {
                return None;
            }
        }
        found.iter().map(|object| typed(object)).collect()
    }

    /// All revisions that the watch has told of, new or old; `None` when it has not told of all yet.
    pub(crate) fn all_revisions(&self) -> Option<Vec<ClusterObjectSet>> {
        let ready = self.revisions.wait_until_ready().now_or_never();
        if ready.is_none_or(|ready| ready.is_err()) {
            return None;
        }
        let all = self.revisions.state();
        Some(all.iter().filter_map(|object| typed(object)).collect())
    }

    /// The extension was written.
    pub(crate) fn wrote(&self, extension: &ClusterExtension) {
        let mut written = self.written.lock();
        written.entry(extension.name_any()).or_default().extension = extension.resource_version();
    }

    /// Records the write of a revision of `extension`.
    pub(crate) fn wrote_revision(&self, extension: &str, revision: &ClusterObjectSet) {
        let mut written = self.written.lock();
        let version = revision.resource_version().unwrap_or_default();
        written.entry(extension.to_owned()).or_default().revision = Some((revision.name_any(), version));
    }

    /// The API server was asked for the revisions: one that is gone is not waited for.
    pub(crate) fn listed(&self, extension: &str, revisions: &[ClusterObjectSet]) {
        if let Some(written) = self.written.lock().get_mut(extension) {
            let there = |(name, _): &(String, String)| revisions.iter().any(|r| r.name_any() == *name);
            written.revision = written.revision.take().filter(there);
        }
    }

    /// The extension is gone.
    pub(crate) fn forget(&self, extension: &str) {
        self.written.lock().remove(extension);
    }
}

fn fresh(object: &DynamicObject, written: Option<&str>) -> bool {
    let version = object.metadata.resource_version.as_deref().unwrap_or_default();
    written.is_none_or(|written| !is_older(version, written))
}

fn typed<K: DeserializeOwned>(object: &DynamicObject) -> Option<K> {
    let value = serde_json::to_value(object).ok()?;
    serde_json::from_value(value)
        .inspect_err(|error| tracing::warn!(name = object.name_any(), %error, "an object cannot be read"))
        .ok()
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;

    fn revision(version: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "resourceVersion": version, "labels": {keys::OWNER_NAME_LABEL: "x"}},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"},
        }))
        .unwrap()
    }

    #[test]
    fn a_store_behind_what_was_written_is_not_asked() {
        let (stores, mut writers) = Stores::new();
        assert_eq!(stores.revisions("x"), None, "nothing is known yet");
        writers.revisions.apply_watcher_event(&Event::Init);
        writers.revisions.apply_watcher_event(&Event::InitDone);
        assert_eq!(stores.revisions("x"), Some(Vec::new()));

        let made: ClusterObjectSet = typed(&revision("7")).unwrap();
        stores.wrote_revision("x", &made);
        assert_eq!(stores.revisions("x"), None, "not seen yet");
        assert_eq!(stores.revisions("y"), Some(Vec::new()));
        writers
            .revisions
            .apply_watcher_event(&Event::Apply(revision("6")));
        assert_eq!(stores.revisions("x"), None, "seen, but older");
        writers
            .revisions
            .apply_watcher_event(&Event::Apply(revision("8")));
        assert_eq!(stores.revisions("x").map(|all| all.len()), Some(1));

        writers
            .revisions
            .apply_watcher_event(&Event::Delete(revision("9")));
        assert_eq!(stores.revisions("x"), None);
        stores.listed("x", &[]);
        assert_eq!(stores.revisions("x"), Some(Vec::new()), "it is gone");
    }

    #[test]
    fn what_cannot_be_read_is_asked_for() {
        let (stores, mut writers) = Stores::new();
        let mut odd = revision("1");
        odd.data["spec"]["revision"] = json!("one");
        writers.revisions.apply_watcher_event(&Event::Init);
        writers.revisions.apply_watcher_event(&Event::InitApply(odd));
        writers.revisions.apply_watcher_event(&Event::InitDone);
        assert_eq!(stores.revisions("x"), None);
    }
}
