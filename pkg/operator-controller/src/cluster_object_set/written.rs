//! Resource versions of the controller's own writes of revisions. A pass over an older state would repeat what is done.

use std::collections::HashMap;
use std::time::Duration;

use kube::{Resource, ResourceExt as _};
use olm_api::ClusterObjectSet;
use olm_applier::watch::is_older;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Longest wait for the event of a write. A watch that takes longer hangs, and drift must be repaired meanwhile.
const WAIT: Duration = Duration::from_secs(10);

/// Last write of each revision, by uid.
#[derive(Default)]
pub(super) struct Written(Mutex<HashMap<String, (String, Instant)>>);

impl Written {
    /// Records the state that the API server returned for a write.
    pub(super) fn note(&self, written: &impl Resource) {
        let meta = written.meta();
        if let (Some(uid), Some(version)) = (&meta.uid, &meta.resource_version) {
            let entry = (version.clone(), Instant::now());
            self.0.lock().insert(uid.clone(), entry);
        }
    }

    /// Returns the longest time to wait for the event of the last write if `set` is from before that write.
    pub(super) fn wait(&self, set: &ClusterObjectSet) -> Option<Duration> {
        let (_, written) = self.newer(set)?;
        WAIT.checked_sub(written.elapsed()).filter(|left| !left.is_zero())
    }

    /// Returns the newest resource version that is known of the revision.
    pub(super) fn version(&self, set: &ClusterObjectSet) -> Option<String> {
        let newer = self.newer(set).map(|(version, _)| version);
        newer.or_else(|| set.resource_version())
    }

    /// Drops the record of the revision with this uid.
    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    fn newer(&self, set: &ClusterObjectSet) -> Option<(String, Instant)> {
        let uid = set.uid().unwrap_or_default();
        let known = self.0.lock().get(&uid).cloned();
        let version = set.resource_version().unwrap_or_default();
        known.filter(|(written, _)| is_older(&version, written))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(version: &str) -> ClusterObjectSet {
        serde_json::from_value(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "uid": "u", "resourceVersion": version},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent"},
        }))
        .unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_before_the_last_write_is_not_acted_on_for_a_while() {
        let written = Written::default();
        assert_eq!(written.wait(&set("9")), None, "nothing is known");
        written.note(&set("10"));
        assert_eq!(written.wait(&set("9")), Some(WAIT), "numbers are compared");
        assert_eq!((written.wait(&set("10")), written.wait(&set("11"))), (None, None));
        assert_eq!(written.version(&set("9")).as_deref(), Some("10"));
        assert_eq!(written.version(&set("11")).as_deref(), Some("11"));
        tokio::time::advance(WAIT).await;
        assert_eq!(written.wait(&set("9")), None, "the watch hangs");
        written.forget("u");
        assert_eq!(written.version(&set("9")).as_deref(), Some("9"));
    }
}
