//! Extensions and revisions from the watches, so that a reconcile without a change sends no request.
//!
//! Invariant: a store that is older than the controller's own last write gives no answer; the caller asks the API
//! server.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::FutureExt as _;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt as _};
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_applier::watch::is_older;
use olm_decide::extension::dependents::needs_others;
use olm_runtime::superseded::superseded;
use parking_lot::Mutex;

use crate::groups::Groups;
use crate::watched::{Watched, WatchedExtension, WatchedRevision};

/// Write ends of the stores, for the watches.
pub(crate) struct Writers {
    pub extensions: Writer<WatchedExtension>,
    pub revisions: Writer<WatchedRevision>,
}

/// Extensions and revisions, as the watches last reported them.
pub(crate) struct Stores {
    extensions: Store<WatchedExtension>,
    revisions: Store<WatchedRevision>,
    /// Names of the revisions, by extension.
    by_extension: Groups,
    /// Names of the revisions whose bundles need something of others, by extension.
    needing: Groups,
    written: Mutex<HashMap<String, Written>>,
}

/// Resource versions of the newest states that this process knows for one extension: of its writes, and of reads after the watch.
#[derive(Debug, Default)]
struct Written {
    extension: Option<String>,
    /// Name and resource version of a revision; no version if another process may have written it.
    revision: Option<(String, Option<String>)>,
}

impl Stores {
    /// Creates empty stores and their write ends.
    pub(crate) fn new() -> (Self, Writers) {
        let writers = Writers {
            extensions: Writer::new(()),
            revisions: Writer::new(()),
        };
        let stores = Self {
            extensions: writers.extensions.as_reader(),
            revisions: writers.revisions.as_reader(),
            by_extension: Groups::default(),
            needing: Groups::default(),
            written: Mutex::default(),
        };
        (stores, writers)
    }

    /// Returns the store of extensions for the controller's queue.
    pub(crate) fn of_extensions(&self) -> Store<WatchedExtension> {
        self.extensions.clone()
    }

    /// Returns the extension `name`; `None` if the API server must be asked.
    pub(crate) fn extension(&self, name: &str) -> Option<ClusterExtension> {
        let object = self.shown(name)?;
        fresh(&object, self.own_version(name).as_deref())
            .then(|| object.decode())
            .flatten()
    }

    /// Returns true if the watch does not show the extension `name`, and this controller wrote nothing to it that the watch could still
    /// report: it is gone, or its creation is yet to be reported.
    pub(crate) fn is_gone(&self, name: &str) -> bool {
        is_ready(&self.extensions) && self.shown(name).is_none() && self.own_version(name).is_none()
    }

    /// Returns true if the extension `name`, as the watch shows it, is newer than the controller's own last write.
    pub(crate) fn is_of_others(&self, name: &str) -> bool {
        let Some(object) = self.shown(name) else {
            return false;
        };
        let own = self.own_version(name);
        own.is_none_or(|own| is_older(&own, version(&object)))
    }

    /// Returns true if the watch reports that the extension `name` is being deleted.
    pub(crate) fn is_deleting(&self, name: &str) -> bool {
        let shown = self.shown(name);
        shown.is_some_and(|object| object.metadata.deletion_timestamp.is_some())
    }

    /// Returns the names of the extensions that the watch shows, each with true if it is being deleted; `None` before the first list.
    pub(crate) fn existing(&self) -> Option<BTreeMap<String, bool>> {
        if !is_ready(&self.extensions) {
            return None;
        }
        let all = self.extensions.state();
        let known = all.iter().map(|object| {
            let is_deleting = object.metadata.deletion_timestamp.is_some();
            (object.name_any(), is_deleting)
        });
        Some(known.collect())
    }

    /// Returns the extension `name` as the watch shows it.
    fn shown(&self, name: &str) -> Option<Arc<WatchedExtension>> {
        self.extensions.get(&ObjectRef::new(name))
    }

    /// Returns the resource version of the newest known state of the extension `name`, if it is not from the watch.
    fn own_version(&self, name: &str) -> Option<String> {
        let written = self.written.lock();
        written.get(name).and_then(|written| written.extension.clone())
    }

    /// Waits until the watch reports that the extension is deleted, or that its spec differs from that of `generation`.
    pub(crate) async fn superseded(&self, name: &str, generation: Option<i64>) {
        superseded(&self.extensions, &ObjectRef::new(name), generation).await;
    }

    /// Returns the revisions with the extension's owner label, without objects and in any order; `None` if the API server must be asked.
    pub(crate) fn revisions(&self, extension: &str) -> Option<Vec<ClusterObjectSet>> {
        if !is_ready(&self.revisions) {
            return None;
        }
        let names = self.by_extension.members(extension).into_iter();
        let known = names.filter_map(|name| self.revisions.get(&ObjectRef::new(&name)));
        // The label may have changed since.
        let found: Vec<_> = known
            .filter(|object| owner(object).as_deref() == Some(extension))
            .collect();
        let written = self.written.lock();
        let newest = written
            .get(extension)
            .and_then(|written| written.revision.clone());
        drop(written);
        if let Some((name, version)) = newest {
            let seen = found.iter().find(|object| object.name_any() == name)?;
            if !has_reached(seen, version.as_deref()) {
                return None;
            }
        }
        found.iter().map(|object| object.decode_head()).collect()
    }

    /// Returns the revisions of all extensions without objects, possibly outdated; `None` before the first list.
    pub(crate) fn all_revisions(&self) -> Option<Vec<ClusterObjectSet>> {
        if !is_ready(&self.revisions) {
            return None;
        }
        let all = self.revisions.state();
        let ours = all.iter().filter(|object| owner(object).is_some());
        Some(ours.filter_map(|object| object.decode_head()).collect())
    }

    /// Returns false if the watch shows that the bundle of no other extension, except of those that are being deleted, needs anything.
    pub(crate) fn may_have_dependents(&self, extension: &str) -> bool {
        !is_ready(&self.revisions)
            || self
                .needing
                .any(|other| other != extension && !self.is_deleting(other))
    }

    /// Records a state of the extension that this process wrote, or read from the API server: no later pass starts from an older one.
    pub(crate) fn wrote(&self, extension: &ClusterExtension) {
        let mut written = self.written.lock();
        written.entry(extension.name_any()).or_default().extension = extension.resource_version();
    }

    /// Records the write of a revision of `extension`.
    pub(crate) fn wrote_revision(&self, extension: &str, revision: &ClusterObjectSet) {
        let mut written = self.written.lock();
        let version = revision.resource_version();
        written.entry(extension.to_owned()).or_default().revision = Some((revision.name_any(), version));
    }

    /// Records that the API server has a revision of this name which the watch may not show yet.
    pub(crate) fn unseen_revision(&self, extension: &str, name: &str) {
        let mut written = self.written.lock();
        written.entry(extension.to_owned()).or_default().revision = Some((name.to_owned(), None));
    }

    /// Records a list from the API server: a written revision that is missing there is not waited for.
    pub(crate) fn listed(&self, extension: &str, revisions: &[ClusterObjectSet]) {
        if let Some(written) = self.written.lock().get_mut(extension) {
            written.revision = written.revision.take().and_then(|(name, version)| {
                let found = revisions.iter().find(|found| found.name_any() == name)?;
                Some((name, version.or_else(|| found.resource_version())))
            });
        }
    }

    /// Follows an event of the watch of revisions, after its store. The watch shows revisions of others too.
    pub(crate) fn follow_revision(&self, event: &Event<WatchedRevision>) {
        self.by_extension
            .follow(event, |revision| (revision.name_any(), owner(revision)));
        self.needing.follow(event, |revision| {
            let properties = revision.annotations().get(keys::CATALOG_PROPERTIES_ANNOTATION);
            let needs = properties.is_some_and(|properties| needs_others(properties));
            (revision.name_any(), owner(revision).filter(|_| needs))
        });
        if let Event::Delete(revision) = event {
            self.deleted_revision(revision);
        }
    }

    /// Records that the watch reported the deletion of a revision: it is not waited for any more.
    fn deleted_revision(&self, revision: &WatchedRevision) {
        let Some(extension) = owner(revision) else {
            return;
        };
        if let Some(written) = self.written.lock().get_mut(&extension) {
            // A new revision of the same name was written after the deletion of the former one.
            let is_other = |(name, version): &(String, Option<String>)| {
                *name != revision.name_any() || !has_reached(revision, version.as_deref())
            };
            written.revision = written.revision.take().filter(is_other);
        }
    }

    /// Drops the records of an extension that is gone.
    pub(crate) fn forget(&self, extension: &str) {
        self.written.lock().remove(extension);
    }
}

/// Returns the extension of a revision; `None` for a revision of others.
pub(crate) fn owner(revision: &WatchedRevision) -> Option<String> {
    let labels = revision.labels();
    let kind = labels.get(keys::OWNER_KIND_LABEL)?;
    let name = labels.get(keys::OWNER_NAME_LABEL)?;
    (kind == keys::OWNER_KIND_CLUSTER_EXTENSION).then(|| name.clone())
}

/// Returns true if the object is not older than a written version; false if that version is not known.
fn has_reached(object: &Watched<impl Resource>, written: Option<&str>) -> bool {
    written.is_some() && fresh(object, written)
}

fn fresh(object: &Watched<impl Resource>, written: Option<&str>) -> bool {
    written.is_none_or(|written| !is_older(version(object), written))
}

fn version(object: &Watched<impl Resource>) -> &str {
    object.metadata.resource_version.as_deref().unwrap_or_default()
}

/// Returns true once the store holds the first list of its watch.
fn is_ready<K>(store: &Store<Watched<K>>) -> bool
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    store
        .wait_until_ready()
        .now_or_never()
        .is_some_and(|ready| ready.is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn revision(version: &str) -> WatchedRevision {
        numbered(version, &json!(1))
    }

    fn numbered(version: &str, number: &serde_json::Value) -> WatchedRevision {
        serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "resourceVersion": version, "labels": {
                keys::OWNER_KIND_LABEL: keys::OWNER_KIND_CLUSTER_EXTENSION, keys::OWNER_NAME_LABEL: "x"}},
            "spec": {"lifecycleState": "Active", "revision": number, "collisionProtection": "Prevent"},
        }))
        .unwrap()
    }

    fn follow(stores: &Stores, writers: &mut Writers, event: &Event<WatchedRevision>) {
        writers.revisions.apply_watcher_event(event);
        stores.follow_revision(event);
    }

    #[test]
    fn a_store_behind_what_was_written_is_not_asked() {
        let (stores, mut writers) = Stores::new();
        assert_eq!(stores.revisions("x"), None, "nothing is known yet");
        follow(&stores, &mut writers, &Event::Init);
        follow(&stores, &mut writers, &Event::InitDone);
        assert_eq!(stores.revisions("x"), Some(Vec::new()));

        let made: ClusterObjectSet = revision("7").decode().unwrap();
        stores.wrote_revision("x", &made);
        assert_eq!(stores.revisions("x"), None, "not seen yet");
        assert_eq!(stores.revisions("y"), Some(Vec::new()));
        follow(&stores, &mut writers, &Event::Apply(revision("6")));
        assert_eq!(stores.revisions("x"), None, "seen, but older");
        follow(&stores, &mut writers, &Event::Apply(revision("8")));
        assert_eq!(stores.revisions("x").map(|all| all.len()), Some(1));

        follow(&stores, &mut writers, &Event::Delete(revision("9")));
        assert_eq!(stores.revisions("x"), Some(Vec::new()), "it is gone");
        stores.wrote_revision("x", &made);
        assert_eq!(stores.revisions("x"), None);
        stores.listed("x", &[]);
        assert_eq!(stores.revisions("x"), Some(Vec::new()), "the API server has none");
    }

    #[test]
    fn a_deletion_ends_the_wait_for_writes_before_it() {
        let (stores, mut writers) = Stores::new();
        follow(&stores, &mut writers, &Event::Init);
        follow(&stores, &mut writers, &Event::InitDone);
        let made: ClusterObjectSet = revision("7").decode().unwrap();
        stores.wrote_revision("x", &made);
        stores.deleted_revision(&revision("6"));
        assert_eq!(stores.revisions("x"), None, "a former revision of this name");
        stores.deleted_revision(&revision("9"));
        assert_eq!(stores.revisions("x"), Some(Vec::new()));
    }

    #[test]
    fn a_revision_of_another_process_is_asked_for_until_the_watch_shows_it() {
        let (stores, mut writers) = Stores::new();
        follow(&stores, &mut writers, &Event::Init);
        follow(&stores, &mut writers, &Event::InitDone);
        stores.unseen_revision("x", "x-1");
        assert_eq!(stores.revisions("x"), None);
        follow(&stores, &mut writers, &Event::Apply(revision("5")));
        follow(&stores, &mut writers, &Event::Delete(revision("6")));
        assert_eq!(stores.revisions("x"), None, "a former revision of this name");
        stores.listed("x", &[revision("7").decode().unwrap()]);
        assert_eq!(stores.revisions("x"), None, "the watch is behind the list");
        follow(&stores, &mut writers, &Event::Apply(revision("7")));
        assert_eq!(stores.revisions("x").map(|all| all.len()), Some(1));

        stores.unseen_revision("x", "x-2");
        assert_eq!(stores.revisions("x"), None);
        stores.listed("x", &[revision("7").decode().unwrap()]);
        assert_eq!(
            stores.revisions("x").map(|all| all.len()),
            Some(1),
            "the API server has none of this extension"
        );
    }

    #[test]
    fn an_extension_is_gone_if_the_watch_misses_it_and_nothing_was_written() {
        let (stores, mut writers) = Stores::new();
        assert!(!stores.is_gone("x"), "nothing is known yet");
        let mut follow = |event| writers.extensions.apply_watcher_event(&event);
        follow(Event::Init);
        follow(Event::InitDone);
        assert!(stores.is_gone("x"));
        let extension = |version: &str| {
            let metadata = json!({"name": "x", "resourceVersion": version});
            json!({"metadata": metadata, "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}}})
        };
        stores.wrote(&serde_json::from_value(extension("7")).unwrap());
        assert!(!stores.is_gone("x"), "the watch is behind");
        assert!(!stores.is_of_others("x"));
        follow(Event::Apply(serde_json::from_value(extension("7")).unwrap()));
        assert!(!stores.is_gone("x") && !stores.is_of_others("x"));
        follow(Event::Apply(serde_json::from_value(extension("10")).unwrap()));
        assert!(stores.is_of_others("x"), "numbers are compared");
        follow(Event::Delete(serde_json::from_value(extension("8")).unwrap()));
        stores.forget("x");
        assert!(stores.is_gone("x"));
    }

    #[test]
    fn what_cannot_be_read_is_asked_for() {
        let (stores, mut writers) = Stores::new();
        let odd = numbered("1", &json!("one"));
        follow(&stores, &mut writers, &Event::Init);
        follow(&stores, &mut writers, &Event::InitApply(odd));
        follow(&stores, &mut writers, &Event::InitDone);
        assert_eq!(stores.revisions("x"), None);
    }
}
