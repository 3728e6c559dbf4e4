//! Prepared objects of revisions, cached during a rollout and dropped after it.

use std::collections::HashMap;
use std::sync::Arc;

use olm_api::ObservedPhase;
use olm_applier::engine::RevisionPhase;
use parking_lot::Mutex;

/// Objects of a revision, validated and ready to be applied.
pub(super) struct Prepared {
    /// Phases in the order in which they are applied.
    pub(super) phases: Arc<Vec<RevisionPhase>>,
    /// Digest of each phase, for `status.observedPhases`.
    pub(super) digests: Vec<ObservedPhase>,
    /// Fault of the objects, such as duplicates.
    pub(super) invalid: Option<String>,
    /// Fault of a name that no API server accepts.
    pub(super) refused: Option<String>,
}

/// Cached objects of the revisions that roll out, by uid, each with the [`state`](olm_decide::object_set::state) of its revision.
#[derive(Default)]
pub(super) struct ContentCache(Mutex<HashMap<String, (u64, Arc<Prepared>)>>);

impl ContentCache {
    /// Returns the cached objects if they are those of `state`.
    pub(super) fn get(&self, uid: &str, state: u64) -> Option<Arc<Prepared>> {
        let contents = self.0.lock();
        let (cached, content) = contents.get(uid)?;
        (*cached == state).then(|| content.clone())
    }

    /// Caches the objects of the revision.
    pub(super) fn insert(&self, uid: String, state: u64, content: Arc<Prepared>) {
        self.0.lock().insert(uid, (state, content));
    }

    /// Drops the objects of the revision.
    pub(super) fn remove(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}
