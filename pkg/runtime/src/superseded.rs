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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
    use kube::runtime::reflector::store;
    use kube::runtime::watcher::Event;
    use tokio::time::{Instant, timeout};

    use super::*;

    fn object(generation: i64, deleted: bool) -> ConfigMap {
        ConfigMap {
            metadata: ObjectMeta {
                name: Some("a".to_owned()),
                generation: Some(generation),
                deletion_timestamp: deleted.then_some(Time(jiff::Timestamp::UNIX_EPOCH)),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn work_ends_when_its_object_changes_or_goes() {
        for change in [
            Event::Apply(object(2, false)),
            Event::Apply(object(1, true)),
            Event::Delete(object(1, false)),
        ] {
            let (reader, mut writer) = store();
            writer.apply_watcher_event(&Event::Apply(object(1, false)));
            let reference = ObjectRef::new("a");
            let start = Instant::now();
            let waiting = superseded(&reader, &reference, Some(1));
            timeout(Duration::from_hours(1), waiting).await.unwrap_err();

            writer.apply_watcher_event(&change);
            superseded(&reader, &reference, Some(1)).await;
            assert_eq!(start.elapsed(), Duration::from_hours(1) + INTERVAL);
        }
    }
}
