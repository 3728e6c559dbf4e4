//! Metadata that the API server sets.

use serde_json::{Value, json};

use crate::kinds::Resource;
use crate::status::Refusal;
use crate::value::{metadata, text};
use crate::world::Target;

/// Checks the namespace of an object against the path, and fills it in.
pub(crate) fn check_namespace(object: &mut Value, target: &Target) -> Result<(), Refusal> {
    let given = text(object, "/metadata/namespace");
    if !target.resource.namespaced {
        // A namespace of a cluster-scoped object is dropped from a create, and refused in an update.
        metadata(object).remove("namespace");
        return Ok(());
    }
    if !given.is_empty() && given != target.namespace {
        return Err(Refusal::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    metadata(object).insert("namespace".into(), target.namespace.clone().into());
    Ok(())
}

/// Sets the metadata of a new object.
pub(crate) fn for_creation(object: &mut Value, resource: &Resource, uid: String, now: &str) {
    let metadata = metadata(object);
    for name in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "generation",
    ] {
        metadata.remove(name);
    }
    metadata.insert("uid".into(), uid.into());
    metadata.insert("creationTimestamp".into(), now.into());
    if resource.traits.generation {
        metadata.insert("generation".into(), json!(1));
    }
}

/// Carries metadata over that a write cannot change.
pub(crate) fn for_update(new: &mut Value, live: &Value) {
    let old = &live["metadata"];
    let metadata = metadata(new);
    let mut keep = |name: &str| match old.get(name) {
        Some(value) => {
            metadata.insert(name.into(), value.clone());
        }
        None => {
            metadata.remove(name);
        }
    };
    for name in ["generation", "creationTimestamp", "resourceVersion", "selfLink"] {
        keep(name);
    }
    if old.get("deletionTimestamp").is_some() {
        keep("deletionTimestamp");
        keep("deletionGracePeriodSeconds");
    } else {
        metadata.remove("deletionTimestamp");
        metadata.remove("deletionGracePeriodSeconds");
    }
    if metadata
        .get("uid")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .is_empty()
    {
        metadata.insert("uid".into(), old["uid"].clone());
    }
}

/// Removes finalizers and owners that are listed twice or empty.
pub(crate) fn tidy(object: &mut Value) {
    let metadata = metadata(object);
    for name in ["finalizers", "ownerReferences", "labels", "annotations"] {
        let empty = metadata.get(name).is_some_and(|value| match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            Value::Null => true,
            _ => false,
        });
        if empty {
            metadata.remove(name);
        }
    }
}

/// Adds the fields that an owner reference always has.
pub(crate) fn complete_owners(object: &mut Value) {
    let owners = object
        .pointer_mut("/metadata/ownerReferences")
        .and_then(Value::as_array_mut);
    for owner in owners.into_iter().flatten() {
        let owner = crate::value::as_map(owner);
        for name in ["apiVersion", "kind", "name", "uid"] {
            owner.entry(name).or_insert_with(|| "".into());
        }
    }
}
