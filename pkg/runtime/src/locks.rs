//! Locks by name.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

type Lock = Arc<tokio::sync::Mutex<()>>;

/// Locks by name. An entry exists while the lock is held or awaited.
#[derive(Debug, Default)]
pub(crate) struct Locks(Arc<Mutex<HashMap<String, Lock>>>);

/// Held or awaited lock.
#[derive(Debug)]
pub(crate) struct LockGuard {
    locks: Arc<Mutex<HashMap<String, Lock>>>,
    name: String,
    lock: Lock,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Locks {
    /// Waits for the lock of `name`.
    pub(crate) async fn lock(&self, name: &str) -> LockGuard {
        let lock = self.0.lock().entry(name.to_owned()).or_default().clone();
        let mut guard = LockGuard {
            locks: self.0.clone(),
            name: name.to_owned(),
            lock: lock.clone(),
            guard: None,
        };
        guard.guard = Some(lock.lock_owned().await);
        guard
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        self.guard = None;
        let mut locks = self.locks.lock();
        // Two owners remain: the map and this value. No other can appear while the map is locked.
        if Arc::strong_count(&self.lock) == 2 {
            locks.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn an_awaited_lock_is_exclusive() {
        let locks = Locks::default();
        let first = locks.lock("a").await;
        let mut second = Box::pin(locks.lock("a"));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        // The second holder has the lock; a third one must wait for the same lock.
        let second = second.await;
        assert!(
            tokio::time::timeout(Duration::from_millis(20), locks.lock("a"))
                .await
                .is_err()
        );
        assert!(locks.lock("b").now_or_never().is_some(), "another name is free");
        drop(second);
        assert!(locks.0.lock().is_empty(), "no entry stays");
    }

    #[tokio::test]
    async fn a_cancelled_wait_leaves_nothing() {
        let locks = Locks::default();
        let first = locks.lock("a").await;
        let mut waiting = Box::pin(locks.lock("a"));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        drop(waiting);
        assert!(locks.0.lock().is_empty());
    }
}
