//! Events about an extension and its revisions.

use k8s_openapi::api::events::v1::Event;
use olm_api::event::Type;
use olm_status::overview::Mood;

use crate::source::last_seen;

/// An event in a list.
#[derive(Debug)]
pub(crate) struct EventRow<'a> {
    /// Time at which it was last seen, RFC 3339; empty if unknown.
    pub(crate) seen: String,
    /// `Normal` or `Warning`.
    pub(crate) type_: &'a str,
    /// Reason.
    pub(crate) reason: &'a str,
    /// Name of the object that it is about.
    pub(crate) object: &'a str,
    /// Note: what happened, as a sentence.
    pub(crate) note: &'a str,
    /// Number of times that it was seen.
    pub(crate) count: i32,
    /// Waiting for warnings.
    pub(crate) mood: Mood,
}

impl<'a> EventRow<'a> {
    /// Reads an event.
    pub(crate) fn new(event: &'a Event) -> Self {
        let type_ = event.type_.as_deref().unwrap_or_default();
        let object = event.regarding.as_ref();
        Self {
            seen: last_seen(event),
            type_,
            reason: event.reason.as_deref().unwrap_or_default(),
            object: object
                .and_then(|object| object.name.as_deref())
                .unwrap_or_default(),
            note: event.note.as_deref().unwrap_or_default(),
            count: event.series.as_ref().map_or(1, |series| series.count),
            mood: if *type_ == Type::Warning {
                Mood::Waiting
            } else {
                Mood::Plain
            },
        }
    }
}
