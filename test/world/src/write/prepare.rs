//! Changes that the API server makes to an object before it validates the object.

use serde_json::{Value, json};

use super::{defaults, metadata as meta};
use crate::kinds::Resource;
use crate::types::{self, Type};
use crate::value::{as_map, child, metadata};
use crate::world::World;

impl World {
    /// Brings an object into the form that is stored: without unknown fields, with defaults.
    pub(crate) fn normalise(&self, object: &mut Value, resource: &Resource) {
        // An empty list of managers is an order to forget them.
        let managers = metadata(object).remove("managedFields");
        if resource.traits.custom {
            if let Some(schema) = self.schema(resource) {
                schema.prepare(object);
            }
            let of = Type::Named("ObjectMeta".into());
            let mut metadata = Value::Object(std::mem::take(metadata(object)));
            types::normalise(&mut metadata, &of);
            as_map(object).insert("metadata".into(), metadata);
        } else {
            types::normalise(object, &resource.fields);
            defaults::fill(object, resource);
        }
        meta::tidy(object);
        set(metadata(object), "managedFields", managers);
    }
}

/// Prepares a new object.
pub(crate) fn for_creation(object: &mut Value, resource: &Resource) {
    if resource.status {
        as_map(object).remove("status");
    }
    defaults::initial_status(object, resource);
}

/// Brings an object into the form that the store gives back.
pub(crate) fn for_storage(object: &mut Value, resource: &Resource) {
    let role = resource.is("rbac.authorization.k8s.io", "Role")
        || resource.is("rbac.authorization.k8s.io", "ClusterRole");
    if role && object["rules"].as_array().is_none_or(Vec::is_empty) {
        as_map(object).insert("rules".into(), Value::Null);
    }
}

/// Prepares an update: the part that the path does not write stays as it is, and generations are counted.
pub(crate) fn for_update(new: &mut Value, live: &Value, resource: &Resource, subresource: &str) {
    match subresource {
        "status" if resource.traits.custom => {
            let managers = metadata(new).remove("managedFields");
            let status = as_map(new).remove("status");
            new.clone_from(live);
            set(metadata(new), "managedFields", managers);
            set(as_map(new), "status", status);
        }
        "status" => {
            set(as_map(new), "spec", live.get("spec").cloned());
            if resource.kind == "Deployment" {
                set(metadata(new), "labels", live.pointer("/metadata/labels").cloned());
            }
        }
        _ => {
            if resource.status {
                set(as_map(new), "status", live.get("status").cloned());
            }
            if resource.is("", "Namespace") && subresource.is_empty() {
                set(as_map(new), "spec", live.get("spec").cloned());
            }
        }
    }
    if subresource != "status" && resource.traits.generation && differs(new, live, resource) {
        let generation = live
            .pointer("/metadata/generation")
            .and_then(Value::as_i64)
            .unwrap_or(0);
        metadata(new).insert("generation".into(), json!(generation + 1));
    }
}

fn set(map: &mut serde_json::Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            map.insert(name.into(), value);
        }
        None => {
            map.remove(name);
        }
    }
}

/// Returns true if an update raises the generation.
fn differs(new: &Value, live: &Value, resource: &Resource) -> bool {
    if resource.traits.custom {
        let without = |object: &Value| {
            let mut object = object.clone();
            as_map(&mut object).remove("metadata");
            object
        };
        return without(new) != without(live);
    }
    match resource.kind.as_str() {
        "Deployment" => {
            new["spec"] != live["spec"]
                || new.pointer("/metadata/annotations") != live.pointer("/metadata/annotations")
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            new["webhooks"] != live["webhooks"]
        }
        _ => new["spec"] != live["spec"],
    }
}

/// Sets a default if the field is absent.
pub(crate) fn default(object: &mut Value, section: &str, name: &str, value: Value) {
    child(object, section).entry(name).or_insert(value);
}
