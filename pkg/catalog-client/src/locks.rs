//! One lock per key.

use std::{collections::HashMap, hash::Hash, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// Locks by key. A lock exists while somebody holds it or waits for it.
#[derive(Debug)]
pub(crate) struct Locks<K>(Mutex<HashMap<K, Arc<tokio::sync::Mutex<()>>>>);

impl<K> Default for Locks<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> Locks<K> {
    /// Waits for the lock of a key. Forgets the locks that nobody holds or waits for: a cancelled wait leaves its own.
    pub(crate) async fn lock(&self, key: K) -> OwnedMutexGuard<()> {
        let lock = {
            let mut all = self.0.lock();
            all.retain(|_, lock| Arc::strong_count(lock) > 1);
            all.entry(key).or_default().clone()
        };
        lock.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_lock_is_for_one_key_and_goes_with_its_holder() {
        let locks = Locks::default();
        let held = locks.lock("a").await;
        assert!(locks.lock("a").now_or_never().is_none(), "it is held");
        assert!(locks.lock("b").now_or_never().is_some());
        drop(held);
        assert!(locks.lock("a").now_or_never().is_some());
        assert_eq!(locks.0.lock().len(), 1, "until the next wait");
    }
}
