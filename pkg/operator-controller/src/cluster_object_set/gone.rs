//! Cleanup after revisions that are gone, also after those whose finalizer others removed.
//!
//! Invariant: the queue drops the state, never during a reconcile of the revision, so that the state does not return.

use std::collections::HashMap;

use kube::ResourceExt as _;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use olm_api::keys;
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use crate::present::Present;
use crate::watched::WatchedRevision;

/// Keys of the state of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RevisionKey {
    name: String,
    /// uid of the revision.
    pub(super) uid: String,
    /// Name of the extension.
    pub(super) owner: String,
    /// Number of the revision.
    pub(super) number: i64,
}

/// Revisions that are gone and may have state left, by name.
#[derive(Debug, Default)]
pub(super) struct GoneRevisions(Mutex<HashMap<String, Vec<RevisionKey>>>);

impl GoneRevisions {
    /// Follows the watch of revisions: records those that vanish and queues them.
    pub(super) fn follow(
        &self,
        present: &mut Present<RevisionKey>,
        event: &Event<WatchedRevision>,
        triggers: &UnboundedSender<ObjectRef<WatchedRevision>>,
    ) {
        // By uid, since a new revision can take the name at once.
        let change = present.take(event, |set| {
            let key = RevisionKey {
                name: set.name_any(),
                uid: set.uid().unwrap_or_default(),
                owner: set
                    .labels()
                    .get(keys::OWNER_NAME_LABEL)
                    .cloned()
                    .unwrap_or_default(),
                number: set.number(),
            };
            (key.uid.clone(), key)
        });
        for (_, key) in change.gone {
            let trigger = ObjectRef::new(&key.name);
            self.0.lock().entry(key.name.clone()).or_default().push(key);
            // Without a receiver the process is stopping.
            let _ = triggers.send(trigger);
        }
    }

    /// Removes and returns the revisions of this name.
    pub(super) fn remove(&self, name: &str) -> Vec<RevisionKey> {
        self.0.lock().remove(name).unwrap_or_default()
    }
}
