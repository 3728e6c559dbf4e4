//! Revisions that this process deleted just now. A pass that starts before the watch shows a deletion would repeat it.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Longest wait for the event of a deletion. A watch that takes longer hangs, or the API server was restored from a backup.
const WAIT: Duration = Duration::from_secs(10);

/// Times of the last deletions, by uid of the revision.
#[derive(Default)]
pub(super) struct Deleted(Mutex<HashMap<String, Instant>>);

impl Deleted {
    /// Records that the API server deleted the revision with this uid, or marked it as being deleted.
    pub(super) fn note(&self, uid: String) {
        self.0.lock().insert(uid, Instant::now());
    }

    /// Returns true if the revision with this uid was deleted just now.
    pub(super) fn has(&self, uid: &str) -> bool {
        self.0.lock().get(uid).is_some_and(|at| is_recent(*at))
    }

    /// Drops the deletions that the watch must have shown.
    pub(super) fn sweep(&self) {
        let mut deleted = self.0.lock();
        if !deleted.is_empty() {
            deleted.retain(|_, at| is_recent(*at));
            if deleted.is_empty() {
                deleted.shrink_to_fit();
            }
        }
    }
}

fn is_recent(at: Instant) -> bool {
    at.elapsed() < WAIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deletion_is_remembered_until_the_watch_must_have_shown_it() {
        let deleted = Deleted::default();
        deleted.note("u".to_owned());
        assert!(deleted.has("u") && !deleted.has("v"));
        deleted.sweep();
        assert!(deleted.has("u"));
        tokio::time::advance(WAIT).await;
        assert!(!deleted.has("u"));
        deleted.sweep();
        assert!(deleted.0.lock().is_empty());
    }
}
