//! Resource versions of the controller's own writes of revisions, and of states that are known to be outdated. A pass over an older state
//! would repeat what is done, or undo it.

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
pub(super) struct Written(Mutex<HashMap<String, Write>>);

/// A write of a revision, answered or refused.
#[derive(Clone)]
struct Write {
    /// Resource version that the API server returned, or to which the refused write was bound.
    version: String,
    at: Instant,
    /// True if this version itself is outdated: the write let a revision go that is being deleted, whose last state may be returned with
    /// the version before, or the API server has refused a write that was bound to this version.
    outdated: bool,
}

impl Write {
    fn rest_of(&self, time: Duration) -> Option<Duration> {
        time.checked_sub(self.at.elapsed()).filter(|left| !left.is_zero())
    }
}

impl Written {
    /// Records the state that the API server returned for a write.
    pub(super) fn note(&self, written: &impl Resource) {
        self.insert(written, false);
    }

    /// Records the write that removed the finalizer.
    pub(super) fn note_release(&self, written: &impl Resource) {
        self.insert(written, written.meta().deletion_timestamp.is_some());
    }

    /// Records that the API server has a newer state than `set`, or none any more: the watch is behind, perhaps for long. Meanwhile others,
    /// such as the garbage collector, may change the objects of the revision at every pass.
    pub(super) fn note_overtaken(&self, set: &ClusterObjectSet) {
        match self.newer(set) {
            Some(newer) => {
                let again = Write {
                    at: Instant::now(),
                    ..newer
                };
                self.0.lock().insert(set.uid().unwrap_or_default(), again);
            }
            None => self.insert(set, true),
        }
    }

    fn insert(&self, written: &impl Resource, outdated: bool) {
        let meta = written.meta();
        if let (Some(uid), Some(version)) = (&meta.uid, &meta.resource_version) {
            let write = Write {
                version: version.clone(),
                at: Instant::now(),
                outdated,
            };
            self.0.lock().insert(uid.clone(), write);
        }
    }

    /// Returns the longest time to wait for the event of a newer state if `set` is from before the last write, or outdated.
    pub(super) fn wait(&self, set: &ClusterObjectSet) -> Option<Duration> {
        self.newer(set)?.rest_of(WAIT)
    }

    /// Returns the rest of `time`, which began with the last write of the revision; `None` if it is over.
    pub(super) fn rest_of(&self, time: Duration, set: &ClusterObjectSet) -> Option<Duration> {
        self.0.lock().get(&set.uid().unwrap_or_default())?.rest_of(time)
    }

    /// Returns the newest resource version that is known of the revision.
    pub(super) fn version(&self, set: &ClusterObjectSet) -> Option<String> {
        let newer = self.newer(set).map(|written| written.version);
        newer.or_else(|| set.resource_version())
    }

    /// Drops the record of the revision with this uid.
    pub(super) fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    fn newer(&self, set: &ClusterObjectSet) -> Option<Write> {
        let uid = set.uid().unwrap_or_default();
        let known = self.0.lock().get(&uid).cloned();
        let version = set.resource_version().unwrap_or_default();
        known.filter(|written| {
            is_older(&version, &written.version) || written.outdated && version == written.version
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
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
        assert_eq!(written.rest_of(WAIT * 2, &set("10")), Some(WAIT));
        assert_eq!(written.rest_of(WAIT, &set("10")), None);
        written.forget("u");
        assert_eq!(written.version(&set("9")).as_deref(), Some("9"));

        written.note_release(&set("12"));
        assert_eq!(written.wait(&set("12")), None, "an archived revision stays");
        let mut going = set("12");
        going.metadata.deletion_timestamp = Some(Time("2026-01-01T00:00:00Z".parse().unwrap()));
        written.note_release(&going);
        assert_eq!(written.wait(&going), Some(WAIT));
    }

    #[tokio::test(start_paused = true)]
    async fn an_outdated_state_is_not_acted_on_for_a_while() {
        let written = Written::default();
        written.note_overtaken(&set("10"));
        assert_eq!(
            written.wait(&set("10")),
            Some(WAIT),
            "another process has changed it"
        );
        assert_eq!(written.wait(&set("11")), None, "the watch has caught up");
        tokio::time::advance(WAIT).await;
        assert_eq!(written.wait(&set("10")), None, "the watch hangs");
        written.note_overtaken(&set("10"));
        assert_eq!(written.wait(&set("10")), Some(WAIT));

        written.note(&set("12"));
        tokio::time::advance(WAIT).await;
        written.note_overtaken(&set("10"));
        assert_eq!(written.wait(&set("10")), Some(WAIT));
        assert_eq!(
            written.version(&set("10")).as_deref(),
            Some("12"),
            "what is known stays"
        );
    }
}
