//! Watches of the objects by which operators hold their upgrades, so that an upgrade goes on as soon as its hold is lifted.
//!
//! There is one watch of one object for each held extension, and none for the others. Only a change of what the object says about the
//! upgrade counts: operators may write their status every second. If the watch fails, it is tried again, and the extension is looked at
//! on an interval all the same.

use std::collections::HashMap;
use std::pin::pin;

use futures::{Stream, StreamExt as _, stream};
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use olm_rollout::hold::Opinion;
use olm_runtime::guard::guard;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Object that an extension waits for.
#[derive(Clone)]
pub(crate) struct Holder {
    /// API of the object, with the rights that read it.
    pub api: Api<DynamicObject>,
    /// Name of the object.
    pub name: String,
    /// Reads the verdict of the object.
    pub opinion: fn(&Value) -> Opinion,
    /// Verdict of the object as it was read.
    pub seen: Opinion,
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

/// Queues `extension` when the verdict of the object changes.
async fn follow(holder: Holder, extension: String, queue: mpsc::UnboundedSender<String>) {
    let config = watcher::Config::default().fields(&format!("metadata.name={}", holder.name));
    let mut events = pin!(watcher::watcher(holder.api, config).default_backoff());
    let mut last = Last {
        opinion: holder.opinion,
        seen: holder.seen,
    };
    let mut listed = None;
    while let Some(event) = events.next().await {
        let changed = match event {
            Ok(Event::Init) => {
                listed = None;
                false
            }
            Ok(Event::InitApply(object)) => {
                listed = Some(object);
                false
            }
            Ok(Event::InitDone) => last.changes(listed.take()),
            Ok(Event::Apply(object)) => last.changes(Some(object)),
            Ok(Event::Delete(_)) => last.changes(None),
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

/// Verdict of the object when the extension last heard of it.
struct Last {
    opinion: fn(&Value) -> Opinion,
    seen: Opinion,
}

impl Last {
    /// Returns true if the verdict of the object differs now; an absent object has none.
    fn changes(&mut self, now: Option<DynamicObject>) -> bool {
        // An object that was read as JSON can be written as JSON.
        let value = now.and_then(|object| serde_json::to_value(object).ok());
        let now = value.map_or(Opinion::Silent, |value| (self.opinion)(&value));
        let changed = self.seen != now;
        self.seen = now;
        changed
    }
}

#[cfg(test)]
mod tests {
    use olm_rollout::hold;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_changes_of_the_verdict_count() {
        let object = |status: &str, message: &str, heartbeat: u32| -> DynamicObject {
            let condition =
                json!({"type": "Upgradeable", "status": status, "reason": "Busy", "message": message});
            serde_json::from_value(json!({
                "apiVersion": "example.com/v1", "kind": "Kite",
                "metadata": {"name": "main", "uid": "u", "resourceVersion": heartbeat.to_string()},
                "status": {"heartbeat": heartbeat, "conditions": [condition]},
            }))
            .unwrap()
        };
        let read = serde_json::to_value(object("False", "it migrates", 1)).unwrap();
        let mut last = Last {
            opinion: hold::of_named_object,
            seen: hold::of_named_object(&read),
        };
        assert!(
            !last.changes(Some(object("False", "it migrates", 1))),
            "the first list after the read"
        );
        assert!(
            !last.changes(Some(object("False", "it migrates", 2))),
            "a heartbeat"
        );
        assert!(
            last.changes(Some(object("False", "it migrates more", 3))),
            "the status shows the message"
        );
        assert!(last.changes(Some(object("True", "", 4))), "the hold is lifted");
        assert!(!last.changes(None), "nothing holds the upgrade in either case");
        assert!(last.changes(Some(object("False", "again", 5))));
        assert!(last.changes(None), "the object is gone");
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
