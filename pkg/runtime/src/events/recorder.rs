//! Writer of Events that counts repeated ones.
//!
//! An event with the type, action, reason and object of one before, within [`SERIES`] of its last repetition, raises the count of that one;
//! its note stays the first. Of each event only what such a repetition needs is kept: thousands of objects have events at once.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::events::{EventType, Reporter};
use kube::{Client, Error};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

/// Time after an event, or its last repetition, within which a repetition is counted.
const SERIES: Duration = Duration::from_mins(6);
/// Interval between two removals of outdated records.
const SWEEP: Duration = Duration::from_mins(1);

/// Content of an event.
pub(super) struct Content {
    pub(super) type_: EventType,
    pub(super) reason: String,
    pub(super) action: String,
    pub(super) note: String,
}

/// Writer of the events of one controller.
pub(super) struct Recorder {
    client: Client,
    reporter: Reporter,
    sent: Mutex<Sent>,
}

impl Recorder {
    pub(super) fn new(client: Client, reporter: Reporter) -> Self {
        Self {
            client,
            reporter,
            sent: Mutex::default(),
        }
    }

    /// Writes an event, or counts it on an equal one. Events about cluster-scoped objects are in the namespace `default`.
    pub(super) async fn publish(&self, content: &Content, object: &ObjectReference) -> Result<(), Error> {
        let namespace = object.namespace.as_deref().unwrap_or("default");
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let now = Timestamp::now();
        let (key, before) = self.sent.lock().find(content, object);
        let record = if let Some(before) = before {
            let record = Record::repeated(before);
            let name = self.name(object, record.since);
            let series = json!({"count": record.count, "lastObservedTime": MicroTime(now)});
            let patch = json!({"metadata": {"name": name}, "series": series});
            let params = PatchParams::default();
            events.patch(&name, &params, &Patch::Merge(&patch)).await?;
            record
        } else {
            let record = Record::first(now);
            let event = self.event(content, object, now);
            events.create(&PostParams::default(), &event).await?;
            record
        };
        self.sent.lock().records.insert(key, record);
        Ok(())
    }

    /// Returns the name of the event about `object` from this time.
    fn name(&self, object: &ObjectReference, since: i128) -> String {
        let object = object.name.as_ref().unwrap_or(&self.reporter.controller);
        format!("{object}.{since:x}")
    }

    fn event(&self, content: &Content, object: &ObjectReference, now: Timestamp) -> Event {
        let Reporter { controller, instance } = &self.reporter;
        let type_ = match content.type_ {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        };
        Event {
            metadata: ObjectMeta {
                name: Some(self.name(object, now.as_nanosecond())),
                namespace: object.namespace.clone(),
                ..ObjectMeta::default()
            },
            type_: Some(type_.to_owned()),
            reason: Some(content.reason.clone()),
            action: Some(content.action.clone()),
            note: Some(content.note.clone()),
            regarding: Some(object.clone()),
            event_time: Some(MicroTime(now)),
            reporting_controller: Some(controller.clone()),
            reporting_instance: Some(instance.as_ref().unwrap_or(controller).clone()),
            ..Event::default()
        }
    }
}

/// Records of the events of the last minutes.
struct Sent {
    hasher: RandomState,
    /// By a hash of all that repetitions have in common. Its keys are random, so foreign names cannot collide on purpose.
    records: HashMap<u64, Record>,
    swept: Instant,
}

impl Default for Sent {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            records: HashMap::new(),
            swept: Instant::now(),
        }
    }
}

/// Record of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    /// Unix time in nanoseconds, which the name of the event contains.
    since: i128,
    count: i32,
    last: Instant,
}

impl Record {
    fn first(now: Timestamp) -> Self {
        Self {
            since: now.as_nanosecond(),
            count: 1,
            last: Instant::now(),
        }
    }

    fn repeated(self) -> Self {
        Self {
            count: self.count.saturating_add(1),
            last: Instant::now(),
            ..self
        }
    }

    fn is_current(&self) -> bool {
        self.last.elapsed() < SERIES
    }
}

impl Sent {
    /// Returns the key of an event, and the record of the one that it repeats.
    fn find(&mut self, content: &Content, object: &ObjectReference) -> (u64, Option<Record>) {
        if self.swept.elapsed() >= SWEEP {
            self.swept = Instant::now();
            self.records.retain(|_, record| record.is_current());
            self.records.shrink_to_fit();
        }
        let ObjectReference {
            api_version,
            field_path,
            kind,
            name,
            namespace,
            resource_version,
            uid,
        } = object;
        let place = (
            api_version,
            kind,
            namespace,
            name,
            uid,
            resource_version,
            field_path,
        );
        let key = self
            .hasher
            .hash_one((content.type_, &content.reason, &content.action, place));
        let before = self.records.get(&key).copied();
        (key, before.filter(Record::is_current))
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::Value;

    use super::*;

    /// A recorder, and its requests: method, path, body.
    type Requests = Arc<Mutex<Vec<(String, String, Value)>>>;

    fn recorder(status: u16) -> (Recorder, Requests) {
        let requests = Requests::default();
        let recorded = Arc::clone(&requests);
        let service = tower::service_fn(move |request: Request<Body>| {
            let recorded = Arc::clone(&recorded);
            async move {
                let (parts, body) = request.into_parts();
                let body: Value = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap();
                let request = (
                    parts.method.to_string(),
                    parts.uri.path().to_owned(),
                    body.clone(),
                );
                recorded.lock().push(request);
                let answer = Body::from(body.to_string().into_bytes());
                Ok::<_, Infallible>(Response::builder().status(status).body(answer).unwrap())
            }
        });
        let reporter = Reporter {
            controller: "c".to_owned(),
            instance: None,
        };
        (Recorder::new(Client::new(service, "n"), reporter), requests)
    }

    fn content(reason: &str, note: &str) -> Content {
        Content {
            type_: EventType::Normal,
            reason: reason.to_owned(),
            action: "A".to_owned(),
            note: note.to_owned(),
        }
    }

    fn object(name: &str) -> ObjectReference {
        ObjectReference {
            name: Some(name.to_owned()),
            uid: Some("u".to_owned()),
            ..ObjectReference::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_repeated_event_is_counted_and_another_one_is_new() {
        let (recorder, requests) = recorder(201);
        let publish = async |reason: &str, note: &str, name: &str| {
            recorder
                .publish(&content(reason, note), &object(name))
                .await
                .unwrap();
            requests.lock().pop().unwrap()
        };
        let (method, path, event) = publish("R", "first", "x").await;
        let events = "/apis/events.k8s.io/v1/namespaces/default/events";
        assert_eq!((method.as_str(), path.as_str()), ("POST", events));
        assert_eq!(
            (&event["note"], &event["type"], &event["reportingInstance"]),
            (&json!("first"), &json!("Normal"), &json!("c"))
        );
        let name = event["metadata"]["name"].as_str().unwrap().to_owned();
        for count in [2, 3] {
            tokio::time::advance(SERIES / 2).await;
            let (method, path, event) = publish("R", "another note", "x").await;
            assert_eq!((method.as_str(), path), ("PATCH", format!("{events}/{name}")));
            assert_eq!(event["series"]["count"], count);
            assert_eq!(event.get("note"), None, "notes cannot change");
        }
        assert_eq!(publish("S", "first", "x").await.0, "POST");
        assert_eq!(publish("R", "first", "y").await.0, "POST");
        tokio::time::advance(SERIES).await;
        assert_eq!(publish("R", "first", "x").await.0, "POST");
        assert_eq!(recorder.sent.lock().records.len(), 1, "the others are outdated");
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_was_not_written_is_not_counted_on() {
        let (recorder, requests) = recorder(500);
        for _ in 0..2 {
            let sent = recorder.publish(&content("R", ""), &object("x")).await;
            assert!(sent.is_err());
        }
        assert!(requests.lock().iter().all(|(method, ..)| method == "POST"));
        assert!(recorder.sent.lock().records.is_empty());
    }

    #[test]
    fn a_record_is_small() {
        assert!(size_of::<(u64, Record)>() <= 64);
    }
}
