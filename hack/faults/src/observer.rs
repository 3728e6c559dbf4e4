//! Observer: watches the API server directly and returns all changes in order, each with its sender from the [`Ledger`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::Client;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use olm_proof::{Actor, Change, ObjectKey};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::kinds::{self, Kind};
use crate::proxy::{Ledger, Sender};
use crate::world::CATALOGD_PROCESS;

/// Time that an event waits for earlier events of other kinds, and for the answer through the proxy that tells its sender.
const SETTLE: Duration = Duration::from_millis(700);
/// Pause before a watch is restarted.
const RESTART: Duration = Duration::from_millis(50);

/// Watches of all kinds of [`kinds::ALL`]. Dropping the observer ends them.
#[derive(Debug)]
pub struct Observer {
    shared: Arc<Shared>,
    ledger: Arc<Ledger>,
    /// Objects by uid, up to the last drained change.
    known: BTreeMap<String, Arc<Value>>,
    _watches: JoinSet<()>,
}

/// Events and gaps that the watches have seen.
#[derive(Debug, Default)]
struct Shared {
    events: Mutex<Vec<Seen>>,
    /// Gaps in the observation.
    lost: Mutex<Vec<String>>,
    /// Objects that existed at the start.
    initial: Mutex<Vec<Value>>,
}

/// An event of a watch.
#[derive(Debug)]
struct Seen {
    /// Time at which the event arrived.
    at: Instant,
    /// Resource version of the object, which orders the changes of all kinds.
    version: u64,
    deleted: bool,
    object: Value,
}

impl Observer {
    /// Lists all kinds and watches them from the versions of the lists.
    ///
    /// # Errors
    /// A kind cannot be listed.
    pub async fn start(client: &Client, ledger: Arc<Ledger>) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut watches = JoinSet::new();
        for kind in kinds::ALL {
            let version = list(client, kind, &shared).await?;
            watches.spawn(watch(
                client.clone(),
                kind,
                version,
                shared.clone(),
                ledger.clone(),
            ));
        }
        let mut known = BTreeMap::new();
        for object in shared.initial.lock().drain(..) {
            known.insert(uid(&object), Arc::new(object));
        }
        Ok(Self {
            shared,
            ledger,
            known,
            _watches: watches,
        })
    }

    /// Returns the objects that exist after the last drained change. Before the first call of [`Observer::drain`], these are the
    /// objects at the start.
    pub fn existing(&self) -> impl Iterator<Item = (ObjectKey, Arc<Value>)> {
        self.known.values().map(|object| (key(object), object.clone()))
    }

    /// Returns the changes since the last call, in order. A later call returns those of the last 0.7 s.
    pub fn drain(&mut self) -> Vec<Change> {
        let now = Instant::now();
        let mut due = Vec::new();
        {
            let mut events = self.shared.events.lock();
            let (ready, later) = events
                .drain(..)
                .partition(|seen| now.duration_since(seen.at) >= SETTLE);
            due.extend::<Vec<Seen>>(ready);
            *events = later;
            // An event with a higher version than a waiting one waits as well.
            if let Some(oldest) = events.iter().map(|seen| seen.version).min() {
                let (ready, wait) = due.into_iter().partition(|seen| seen.version < oldest);
                due = ready;
                events.extend::<Vec<Seen>>(wait);
            }
        }
        due.sort_by_key(|seen| seen.version);
        due.into_iter().filter_map(|seen| self.change(seen)).collect()
    }

    /// Waits until all changes so far can be returned in order, and returns them.
    pub async fn settle(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        loop {
            tokio::time::sleep(SETTLE).await;
            changes.extend(self.drain());
            if self.shared.events.lock().is_empty() {
                return changes;
            }
        }
    }

    /// Returns the gaps in the observation: for each, the watch and the reason why events may be missing.
    pub fn lost(&self) -> Vec<String> {
        self.shared.lost.lock().clone()
    }

    /// Turns an event into a change and updates the known objects; `None` if the object is known at this version.
    fn change(&mut self, seen: Seen) -> Option<Change> {
        let uid = uid(&seen.object);
        let key = key(&seen.object);
        let object = Arc::new(seen.object);
        let before = if seen.deleted {
            self.known.remove(&uid)
        } else {
            self.known.insert(uid.clone(), object.clone())
        };
        if before
            .as_ref()
            .is_some_and(|before| version(before) == version(&object))
            && !seen.deleted
        {
            return None;
        }
        let terminating = |value: &Value| value["metadata"]["deletionTimestamp"].is_string();
        let was_terminating = before.as_deref().is_some_and(terminating);
        let requested = !was_terminating && (seen.deleted || terminating(&object));
        let deletion = if requested {
            self.ledger.take_deletion(&uid)
        } else {
            None
        };
        let actor = match (&deletion, self.ledger.writer(seen.version)) {
            (Some((sender, _)), _) => actor(*sender),
            (None, Some(sender)) if !requested => actor(sender),
            _ => Actor::Other(last_manager(&object)),
        };
        Some(Change {
            actor,
            object: key,
            before,
            after: (!seen.deleted).then_some(object),
            deletion: deletion.map(|(_, preconditions)| preconditions),
        })
    }
}

/// Returns the actor of a sender. catalogd is not under test, so it counts as somebody else.
fn actor(sender: Sender) -> Actor {
    if sender == CATALOGD_PROCESS {
        Actor::Other("catalogd".to_owned())
    } else {
        Actor::Controller(sender)
    }
}

/// Adds all objects of a kind to the initial ones, and returns the resource version of the list.
async fn list(client: &Client, kind: Kind, shared: &Shared) -> anyhow::Result<String> {
    let list = match kind.all(client).list(&ListParams::default()).await {
        Ok(list) => list,
        // An implementation without revisions has no CRD for them.
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok("0".to_owned()),
        Err(error) => return Err(error.into()),
    };
    let objects = list.items.into_iter().filter_map(|object| value(object, kind));
    shared.initial.lock().extend(objects);
    Ok(list.metadata.resource_version.unwrap_or_default())
}

/// Watches a kind from a resource version until its task is aborted.
async fn watch(client: Client, kind: Kind, mut from: String, shared: Arc<Shared>, ledger: Arc<Ledger>) {
    let api = kind.all(&client);
    loop {
        if let Ok(stream) = api.watch(&WatchParams::default(), &from).await {
            let mut stream = stream.boxed();
            while let Some(Ok(event)) = stream.next().await {
                let (object, deleted) = match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                    WatchEvent::Deleted(object) => (object, true),
                    WatchEvent::Bookmark(mark) => {
                        from = mark.metadata.resource_version;
                        continue;
                    }
                    WatchEvent::Error(error) => {
                        let gap = format!("watch of {} from {from}: {}", kind.name(), error.message);
                        shared.lost.lock().push(gap);
                        "0".clone_into(&mut from);
                        break;
                    }
                };
                from = object.metadata.resource_version.clone().unwrap_or(from);
                let Some(object) = value(object, kind) else {
                    continue;
                };
                let version = version(&object);
                ledger.saw(version);
                let at = Instant::now();
                shared.events.lock().push(Seen {
                    at,
                    version,
                    deleted,
                    object,
                });
            }
        }
        tokio::time::sleep(RESTART).await;
    }
}

/// Returns the object as JSON, with its kind and `apiVersion`, which items of lists lack.
fn value(object: DynamicObject, kind: Kind) -> Option<Value> {
    let mut value = serde_json::to_value(object).ok()?;
    value["apiVersion"] = kind.api_version().into();
    value["kind"] = kind.name().into();
    Some(value)
}

fn uid(object: &Value) -> String {
    text(object, "/metadata/uid")
}

fn version(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion")
        .parse()
        .unwrap_or_default()
}

fn key(object: &Value) -> ObjectKey {
    let api_version = text(object, "/apiVersion");
    let namespace = text(object, "/metadata/namespace");
    ObjectKey {
        group: api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
            .to_owned(),
        kind: text(object, "/kind"),
        namespace: (!namespace.is_empty()).then_some(namespace),
        name: text(object, "/metadata/name"),
    }
}

/// Returns the field manager of the newest entry, as a hint at the writer.
fn last_manager(object: &Value) -> String {
    let entries = object["metadata"]["managedFields"].as_array();
    let newest = entries
        .into_iter()
        .flatten()
        .max_by_key(|entry| text(entry, "/time"));
    newest.map_or_else(|| "unknown".to_owned(), |entry| text(entry, "/manager"))
}

fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
