//! Watches: what a client asked for, and the encoding of events.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::form::Form;
use crate::kinds::Resource;
use crate::list::parsed;
use crate::selector::Selector;
use crate::status::Refusal;
use crate::store::Event;
use crate::value::metadata;
use crate::world::{Call, Target, World};

/// Annotation of the bookmark after the initial events.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// An open watch. Who drives the watch decides when its client sees which events.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    resource: Arc<Resource>,
    namespace: String,
    selector: Selector,
    form: Form,
    /// True if the client wants bookmarks.
    pub bookmarks: bool,
    /// Seconds until the client expects the end of the watch.
    pub timeout: Option<u64>,
    /// Resource version after which events are due. The first frames come from [`WatchRequest::start`].
    pub after: u64,
    initial: Initial,
}

/// First events of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Initial {
    /// None: the client knows the objects.
    None,
    /// All objects.
    Objects,
    /// All objects, then a bookmark.
    ObjectsAndBookmark,
}

impl World {
    pub(crate) fn watch(
        &self,
        call: &Call,
        target: Target,
        form: Form,
    ) -> Result<Box<WatchRequest>, Refusal> {
        let parameters = &call.parameters;
        let mut selector = Selector::of(parameters)?;
        if let Some(field) = selector.unsupported(&target.resource.kind) {
            return Err(Refusal::bad_request(format!(
                "field label not supported: {field}"
            )));
        }
        if !target.name.is_empty() {
            selector.require_name(&target.name);
        }
        let version = parameters.get("resourceVersion");
        let sends_initial = parameters.is_true("sendInitialEvents");
        if sends_initial && parameters.get("resourceVersionMatch") != Some("NotOlderThan") {
            let cause = crate::status::Cause::new(
                "FieldValueForbidden",
                "resourceVersionMatch",
                "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            );
            return Err(Refusal::invalid_options("ListOptions", &[cause]));
        }
        let now = self.store.revision();
        let (after, initial) = match version {
            _ if sends_initial => (now, Initial::ObjectsAndBookmark),
            None | Some("0") => (now, Initial::Objects),
            Some(version) => (parsed(version)?, Initial::None),
        };
        Ok(Box::new(WatchRequest {
            resource: target.resource,
            namespace: target.namespace,
            selector,
            form,
            bookmarks: parameters.is_true("allowWatchBookmarks"),
            timeout: parameters
                .get("timeoutSeconds")
                .and_then(|seconds| seconds.parse().ok()),
            after,
            initial,
        }))
    }
}

impl WatchRequest {
    /// Returns the plural and the group of the watched kind.
    pub fn resource(&self) -> (&str, &str) {
        (&self.resource.plural, &self.resource.group)
    }

    /// Returns the first frames: the objects, if the client asked for them, as they are at [`WatchRequest::after`].
    ///
    /// # Errors
    /// The frame of an error that ends the watch: its resource version is forgotten (410).
    pub fn start(&self, world: &World) -> Result<Vec<Value>, Value> {
        self.check(world)?;
        if self.initial == Initial::None {
            return Ok(Vec::new());
        }
        let namespace = (!self.namespace.is_empty()).then_some(self.namespace.as_str());
        let all = world
            .store
            .list_at(&self.resource.group, &self.resource.plural, namespace, self.after);
        let selected = all.values().filter(|object| self.selector.selects(object));
        let mut out: Vec<Value> = selected.map(|object| self.frame("ADDED", object, None)).collect();
        if self.initial == Initial::ObjectsAndBookmark {
            let mut bookmark = self.bookmark(self.after);
            bookmark["object"]["metadata"]["annotations"] = json!({ INITIAL_END: "true" });
            out.push(bookmark);
        }
        Ok(out)
    }

    /// Checks that the events after [`WatchRequest::after`] are not forgotten.
    ///
    /// # Errors
    /// The frame of the error that ends the watch.
    pub fn check(&self, world: &World) -> Result<(), Value> {
        let compacted = world.compacted();
        if self.after < compacted {
            let refusal = Refusal::expired(format!("too old resource version: {} ({compacted})", self.after));
            return Err(json!({"type": "ERROR", "object": refusal.body()}));
        }
        Ok(())
    }

    /// Returns the frames of events, in order; events of other objects have none.
    pub fn frames(&self, events: &[Event]) -> Vec<Value> {
        events.iter().filter_map(|event| self.event(event)).collect()
    }

    /// Returns the frame of an event; `None` if the watch does not select the event.
    pub fn event(&self, event: &Event) -> Option<Value> {
        let key = &event.key;
        let watched = key.group == self.resource.group
            && key.plural == self.resource.plural
            && (self.namespace.is_empty() || key.namespace == self.namespace);
        if !watched {
            return None;
        }
        let selected = |object: &Option<Arc<Value>>| {
            object
                .as_ref()
                .is_some_and(|object| self.selector.selects(object))
        };
        match (&event.before, &event.after) {
            (before, Some(after)) if self.selector.selects(after) => {
                let name = if selected(before) { "MODIFIED" } else { "ADDED" };
                Some(self.frame(name, after, None))
            }
            (Some(before), _) if self.selector.selects(before) => {
                Some(self.frame("DELETED", before, Some(event.revision)))
            }
            _ => None,
        }
    }

    /// Returns a bookmark.
    pub fn bookmark(&self, revision: u64) -> Value {
        let metadata = json!({"resourceVersion": revision.to_string()});
        let mut object = crate::write::zero(&self.resource);
        object["metadata"] = metadata;
        let object = self.form.object(object);
        json!({"type": "BOOKMARK", "object": object})
    }

    fn frame(&self, name: &str, object: &Arc<Value>, revision: Option<u64>) -> Value {
        let mut shown = Value::clone(&*self.resource.at_version(object));
        if let Some(revision) = revision {
            metadata(&mut shown).insert("resourceVersion".into(), revision.to_string().into());
        }
        json!({"type": name, "object": self.form.object(shown)})
    }
}

/// Returns the bytes of a frame as a watch sends them.
pub fn line(frame: &Value) -> Vec<u8> {
    let mut out = frame.to_string().into_bytes();
    out.push(b'\n');
    out
}
