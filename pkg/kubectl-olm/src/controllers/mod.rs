//! Installation and removal of the controllers: manifests, checks before it, waiting.
//!
//! [`plan`] and [`preflight`] are pure functions on values; [`observe`], [`remove`], [`take_over`], [`wait`] and the commands call the API
//! server.

pub(crate) mod observe;
pub(crate) mod plan;
pub(crate) mod preflight;
pub(crate) mod remove;
pub(crate) mod take_over;
pub(crate) mod wait;

use kube::api::DynamicObject;
use olm_text::object::ObjectId;
use serde_json::Value;

use crate::source::FIELD_MANAGER;

/// Returns kind, namespace and name for people.
pub(crate) fn title(object: &Value) -> String {
    let id = ObjectId::of(object);
    if id.namespace.is_empty() {
        format!("{} {}", id.kind, id.name)
    } else {
        format!("{} {}/{}", id.kind, id.namespace, id.name)
    }
}

/// Returns true if `install-controllers` applied the object.
pub(crate) fn is_ours(present: &DynamicObject) -> bool {
    managers(present).any(|manager| manager == FIELD_MANAGER)
}

/// Returns the field managers of an object, except those of subresources such as the status.
pub(crate) fn managers(present: &DynamicObject) -> impl Iterator<Item = &str> {
    let entries = present.metadata.managed_fields.iter().flatten();
    entries
        .filter(|entry| entry.subresource.as_deref().unwrap_or_default().is_empty())
        .filter_map(|entry| entry.manager.as_deref())
}
