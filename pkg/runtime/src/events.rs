//! Kubernetes events about an object, never in the way of the work they tell of.

use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use olm_text::{cut, printable};

/// How long publishing one event may take.
const CALL: Duration = Duration::from_secs(10);
/// The API server refuses longer notes.
const NOTE_BYTES: usize = 1024;

/// Publishes events of one controller. Clones share the recorder, which joins repeated events.
#[derive(Clone)]
pub struct Events(Recorder);

impl Events {
    /// Events that name `controller` as their reporter, and this pod as the instance.
    #[must_use]
    pub fn new(client: Client, controller: &str) -> Self {
        let instance = std::env::var("POD_NAME")
            .or_else(|_| std::env::var("HOSTNAME"))
            .ok();
        Self(Recorder::new(
            client,
            Reporter {
                controller: controller.to_owned(),
                instance,
            },
        ))
    }

    /// Tells of something expected. `reason` and `action` are `UpperCamelCase` words.
    pub fn normal(&self, object: ObjectReference, reason: &str, action: &str, note: &str) {
        self.publish(EventType::Normal, object, reason, action, note);
    }

    /// Tells of something that needs attention.
    pub fn warning(&self, object: ObjectReference, reason: &str, action: &str, note: &str) {
        self.publish(EventType::Warning, object, reason, action, note);
    }

    /// As [`Events::normal`], written when this returns, as far as the API server takes it: for the last thing that a
    /// process does.
    pub async fn normal_now(&self, object: ObjectReference, reason: &str, action: &str, note: &str) {
        let event = event(EventType::Normal, reason, action, note);
        write(&self.0, &event, &object).await;
    }

    /// In a task of its own: an event that cannot be written is logged and lost.
    fn publish(&self, type_: EventType, object: ObjectReference, reason: &str, action: &str, note: &str) {
        let event = event(type_, reason, action, note);
        let recorder = self.0.clone();
        tokio::spawn(async move { write(&recorder, &event, &object).await });
    }
}

fn event(type_: EventType, reason: &str, action: &str, note: &str) -> Event {
    Event {
        type_,
        reason: reason.to_owned(),
        note: Some(cut(&printable(note), NOTE_BYTES).into_owned()),
        action: action.to_owned(),
        secondary: None,
    }
}

async fn write(recorder: &Recorder, event: &Event, object: &ObjectReference) {
    match tokio::time::timeout(CALL, recorder.publish(event, object)).await {
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
        let noted = |note: &str| event(EventType::Normal, "R", "A", note).note.unwrap_or_default();
        assert_eq!(noted("short\x1b[31m"), "short\\u{1b}[31m");
        let long = noted(&"é".repeat(2000));
        assert!(long.len() <= NOTE_BYTES && long.ends_with('…'));
    }
}
