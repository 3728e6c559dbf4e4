//! Watches of the objects by which operators hold their upgrades, so that an upgrade goes on as soon as its hold is lifted.
//!
//! There is one watch of one object's metadata for each held extension, and none for the others. If the watch fails, it is tried
//! again, and the extension is looked at on an interval all the same.

use std::collections::HashMap;
use std::pin::pin;

use futures::{Stream, StreamExt as _, stream};
use kube::Api;
use kube::api::{DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use olm_runtime::guard::guard;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Metadata of the object that is watched.
pub(crate) type Watched = PartialObjectMeta<DynamicObject>;

/// Object that an extension waits for.
#[derive(Clone)]
pub(crate) struct Holder {
    /// API of the object, with the rights that read it.
    pub api: Api<Watched>,
    /// Name of the object.
    pub name: String,
    /// uid and resourceVersion of the object as it was read.
    pub seen: Option<(String, String)>,
}

#[derive(Debug)]
struct Watch {
    /// URL and name of the object.
    object: (String, String),
    task: JoinHandle<()>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watches by name of the extension.
#[derive(Debug)]
pub(crate) struct HoldWatches {
    queue: mpsc::UnboundedSender<String>,
    changes: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
    watches: Mutex<HashMap<String, Watch>>,
}

impl Default for HoldWatches {
    fn default() -> Self {
        let (queue, changes) = mpsc::unbounded_channel();
        Self {
            queue,
            changes: Mutex::new(Some(changes)),
            watches: Mutex::default(),
        }
    }
}

impl HoldWatches {
    /// Returns the extensions whose object changed; the stream of a second call is empty.
    pub(crate) fn changes(&self) -> impl Stream<Item = String> + Send + 'static {
        let changes = self.changes.lock().take();
        stream::iter(changes).flat_map(|mut changes| stream::poll_fn(move |cx| changes.poll_recv(cx)))
    }

    /// Watches `holder` on behalf of `extension`, in the place of any other object.
    pub(crate) fn watch(&self, extension: &str, holder: Holder) {
        let object = (holder.api.resource_url().to_owned(), holder.name.clone());
        let mut watches = self.watches.lock();
        let running = watches
            .get(extension)
            .is_some_and(|watch| watch.object == object && !watch.task.is_finished());
        if !running {
            let work = follow(holder, extension.to_owned(), self.queue.clone());
            let task = tokio::spawn(async {
                // The interval remains.
                if let Err(panicked) = guard(work).await {
                    tracing::error!(%panicked, "the watch of a hold ended");
                }
            });
            watches.insert(extension.to_owned(), Watch { object, task });
        }
    }

    /// Ends the watch of `extension`.
    pub(crate) fn release(&self, extension: &str) {
        self.watches.lock().remove(extension);
    }
}

/// Queues `extension` at every change of the object.
async fn follow(holder: Holder, extension: String, queue: mpsc::UnboundedSender<String>) {
    let config = watcher::Config::default().fields(&format!("metadata.name={}", holder.name));
    let mut events = pin!(watcher::watcher(holder.api, config).default_backoff());
    let mut last = Last(holder.seen);
    let mut listed = None;
    while let Some(event) = events.next().await {
        let changed = match event {
            Ok(Event::Init) => {
                listed = None;
                false
            }
            Ok(Event::InitApply(object)) => {
                listed = Some(version(&object));
                false
            }
            Ok(Event::InitDone) => last.becomes(listed.take()),
            Ok(Event::Apply(object)) => last.becomes(Some(version(&object))),
            Ok(Event::Delete(_)) => last.becomes(None),
            Err(error) => {
                tracing::debug!(extension, %error, "watching the object that holds an upgrade failed; trying again");
                false
            }
        };
        // Without a receiver the process is stopping.
        if changed && queue.send(extension.clone()).is_err() {
            return;
        }
    }
}

/// uid and resourceVersion of the object when the extension last heard of it; `None` if it was absent.
struct Last(Option<(String, String)>);

impl Last {
    /// Returns true if the object differs now.
    fn becomes(&mut self, now: Option<(String, String)>) -> bool {
        let changed = self.0 != now;
        self.0 = now;
        changed
    }
}

fn version(object: &Watched) -> (String, String) {
    let metadata = &object.metadata;
    (
        metadata.uid.clone().unwrap_or_default(),
        metadata.resource_version.clone().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_count() {
        let version = |number: &str| Some(("uid".to_owned(), number.to_owned()));
        let mut last = Last(version("1"));
        assert!(!last.becomes(version("1")), "the first list after the read");
        assert!(last.becomes(version("2")));
        assert!(!last.becomes(version("2")), "a list after a failure");
        assert!(last.becomes(None) && !last.becomes(None));
    }

    #[tokio::test]
    async fn changes_are_taken_once() {
        let watches = HoldWatches::default();
        let mut changes = pin!(watches.changes());
        assert!(watches.changes().next().await.is_none());
        watches.queue.send("argo".to_owned()).unwrap();
        assert_eq!(changes.next().await.as_deref(), Some("argo"));
    }
}
