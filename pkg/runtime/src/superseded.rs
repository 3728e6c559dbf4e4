//! Long work on an object that ends when the object changes.

use std::hash::Hash;
use std::time::Duration;

use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};

/// Interval at which the store is checked.
const INTERVAL: Duration = Duration::from_millis(500);

/// Waits until the store reports that the object is deleted, or that its spec differs from that of `generation`.
pub async fn superseded<K>(store: &Store<K>, object: &ObjectRef<K>, generation: Option<i64>)
where
    K: Resource + Clone + 'static,
    <K as Resource>::DynamicType: Eq + Hash + Clone,
{
    loop {
        tokio::time::sleep(INTERVAL).await;
        let outdated = store.get(object).is_none_or(|present| {
            let meta = present.meta();
            meta.deletion_timestamp.is_some() || meta.generation != generation
        });
        if outdated {
            return;
        }
    }
}
