//! Kubernetes events about objects. Failures to write events never affect the caller.

mod recorder;

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{EventType, Reporter},
};
use olm_text::{cut, printable};

use recorder::{Content, Recorder};

/// Timeout for writing one event.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum length of a note in bytes, enforced by the API server.
const MAX_NOTE: usize = 1024;

/// Event publisher of one controller. Clones share the recorder, which aggregates repeated events.
#[derive(Clone)]
pub struct Events(Arc<Recorder>);

impl Events {
    /// Returns a publisher with `controller` as the reporter and this pod as its instance.
    #[must_use]
    pub fn new(client: Client, controller: &str) -> Self {
        let instance = std::env::var("POD_NAME")
            .or_else(|_| std::env::var("HOSTNAME"))
            .ok();
        Self(Arc::new(Recorder::new(
            client,
            Reporter {
                controller: controller.to_owned(),
                instance,
            },
        )))
    }

    /// Publishes a normal event. `reason` and `action` are `UpperCamelCase` words.
    pub fn normal(&self, object: ObjectReference, reason: &str, action: &str, note: &str) {
        self.publish(EventType::Normal, object, reason, action, note);
    }

    /// Publishes an event of type `Warning`, with words as in [`normal`](Self::normal).
    pub fn warning(&self, object: ObjectReference, reason: &str, action: &str, note: &str) {
        self.publish(EventType::Warning, object, reason, action, note);
    }

    /// Publishes a normal event and waits for the write, for events right before the process exits.
    pub async fn normal_now(&self, object: ObjectReference, reason: &str, action: &str, note: &str) {
        let event = event(EventType::Normal, reason, action, note);
        write(&self.0, &event, &object).await;
    }

    /// Writes in a task of its own: a failed write is logged and dropped.
    fn publish(&self, type_: EventType, object: ObjectReference, reason: &str, action: &str, note: &str) {
        let event = event(type_, reason, action, note);
        let recorder = Arc::clone(&self.0);
        tokio::spawn(async move { write(&recorder, &event, &object).await });
    }
}

fn event(type_: EventType, reason: &str, action: &str, note: &str) -> Content {
    Content {
        type_,
        reason: reason.to_owned(),
        action: action.to_owned(),
        note: cut(&printable(note), MAX_NOTE).into_owned(),
    }
}

async fn write(recorder: &Recorder, event: &Content, object: &ObjectReference) {
    match tokio::time::timeout(CALL_TIMEOUT, recorder.publish(event, object)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, reason = event.reason, "event not written"),
        Err(_) => tracing::debug!(reason = event.reason, "event not written in time"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_short_and_printable() {
        let note_of = |note: &str| event(EventType::Normal, "R", "A", note).note;
        assert_eq!(note_of("short\x1b[31m"), "short\\u{1b}[31m");
        let long = note_of(&"é".repeat(2000));
        assert!(long.len() <= MAX_NOTE && long.ends_with('…'));
    }
}
