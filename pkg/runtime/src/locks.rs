//! Locks by key, such as the name of an owner.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

type Lock = Arc<tokio::sync::Mutex<()>>;

type Entries<K> = Arc<Mutex<HashMap<K, Lock>>>;

/// Locks by key. An entry exists while the lock is held or awaited.
#[derive(Debug)]
pub struct Locks<K>(Entries<K>);

impl<K> Default for Locks<K> {
    fn default() -> Self {
        Self(Entries::default())
    }
}

/// Held or awaited lock.
#[derive(Debug)]
pub struct LockGuard<K: Eq + Hash> {
    locks: Entries<K>,
    key: K,
    lock: Lock,
    guard: Option<OwnedMutexGuard<()>>,
}

impl<K: Clone + Eq + Hash> Locks<K> {
    /// Waits for the lock of `key`.
    pub async fn lock(&self, key: impl Into<K>) -> LockGuard<K> {
        let key = key.into();
        let lock = self.0.lock().entry(key.clone()).or_default().clone();
        let mut guard = LockGuard {
            locks: self.0.clone(),
            key,
            lock: lock.clone(),
            guard: None,
        };
        guard.guard = Some(lock.lock_owned().await);
        guard
    }
}

impl<K: Eq + Hash> Drop for LockGuard<K> {
    fn drop(&mut self) {
        self.guard = None;
        let mut locks = self.locks.lock();
        // Two owners remain: the map and this value. No other can appear while the map is locked.
        if Arc::strong_count(&self.lock) == 2 {
            locks.remove(&self.key);
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
        let locks = Locks::<String>::default();
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
        let locks = Locks::<String>::default();
        let first = locks.lock("a").await;
        let mut waiting = Box::pin(locks.lock("a"));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(first);
        drop(waiting);
        assert!(locks.0.lock().is_empty());
    }
}
