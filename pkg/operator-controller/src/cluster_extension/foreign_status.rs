//! Notices statuses that others wrote over the controller's own: a former leader whose last write arrives late, or a person.
//!
//! The queue passes over changes of a status, because most are the controller's own. A status of others would stay until the extension
//! changes or hours have passed.

use std::future;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use kube::ResourceExt as _;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use tokio::sync::mpsc;

use super::gather::stores::Stores;
use crate::listed::UntilListed;
use crate::present::Present;
use crate::watched::WatchedExtension;

/// Delay before a changed status is looked at. The answer to an own write comes after its event at times, and two controllers that both
/// believe to lead must not drive each other.
const DELAY: Duration = Duration::from_secs(1);

/// Returns a function that follows the events of the watch, and the extensions whose status others wrote, each after a delay.
pub(super) fn follow(
    stores: Arc<Stores>,
) -> (
    impl FnMut(&Event<WatchedExtension>),
    impl Stream<Item = ObjectRef<WatchedExtension>> + Send + 'static,
) {
    let (changed, mut names) = mpsc::unbounded_channel();
    let (mut present, mut listed) = (Present::default(), UntilListed::default());
    let follow = move |event: &Event<WatchedExtension>| {
        let change = present.take(event, |object| (object.name_any(), object.status_hash()));
        let name = match event {
            Event::InitApply(object) | Event::Apply(object) if change.replaced.is_some() => {
                Some(object.name_any())
            }
            _ => None,
        };
        // Without a receiver the process is stopping.
        for name in listed.take(event, name) {
            let _ = changed.send(name);
        }
    };
    let foreign = stream::poll_fn(move |cx| names.poll_recv(cx))
        .map(|name| async {
            tokio::time::sleep(DELAY).await;
            name
        })
        .buffer_unordered(usize::MAX)
        .filter(move |name| future::ready(stores.is_of_others(name)))
        .map(|name| ObjectRef::new(&name));
    (follow, foreign)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_status_of_others_queues_its_extension_and_an_own_one_does_not() {
        let (stores, mut writers) = Stores::new();
        let stores = Arc::new(stores);
        let (mut follow, mut foreign) = follow(Arc::clone(&stores));
        let object = |version: &str, text: &str| -> WatchedExtension {
            let metadata = json!({"name": "x", "resourceVersion": version});
            serde_json::from_value(json!({"metadata": metadata, "status": {"text": text}})).unwrap()
        };
        let mut see = |event: Event<WatchedExtension>| {
            writers.extensions.apply_watcher_event(&event);
            follow(&event);
        };
        see(Event::Apply(object("1", "new")));
        see(Event::Apply(object("2", "own")));
        // The answer comes after the event.
        let own = json!({"metadata": {"name": "x", "resourceVersion": "2"},
            "spec": {"namespace": "n", "source": {"sourceType": "Catalog"}}});
        stores.wrote(&serde_json::from_value(own).unwrap());
        let next = tokio::time::timeout(DELAY * 3, foreign.next()).await;
        assert!(next.is_err(), "the status is the controller's");
        see(Event::Apply(object("3", "own")));
        let next = tokio::time::timeout(DELAY * 3, foreign.next()).await;
        assert!(next.is_err(), "something else was changed");
        see(Event::Apply(object("4", "foreign")));
        let next = tokio::time::timeout(DELAY * 3, foreign.next()).await;
        assert_eq!(next.ok().flatten().unwrap().name, "x");
    }
}
