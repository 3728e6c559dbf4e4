//! Changes that the API server makes to an object before it validates the object.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{defaults, metadata as meta};
use crate::kinds::Resource;
use crate::store::Key;
use crate::types::{self, Type};
use crate::value::{as_map, child, metadata};
use crate::world::{Target, World};

impl World {
    /// Brings an object into the form that is stored: without unknown fields, with defaults.
    pub(crate) fn normalise(&self, object: &mut Value, resource: &Resource) {
        // An empty list of managers is an order to forget them. Custom resources lose empty lists when they are decoded.
        let managers = metadata(object).remove("managedFields");
        let managers = managers.filter(|managers| {
            !resource.traits.custom || managers.as_array().is_some_and(|all| !all.is_empty())
        });
        if resource.traits.custom {
            // An object of another kind is refused later.
            if object["kind"] == *resource.kind
                && let Some(schema) = self.schema(resource)
            {
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

impl World {
    /// Brings an applied object into the form that is stored. A custom resource gets defaults and keeps the rest: nulls,
    /// and empty metadata.
    pub(crate) fn normalise_applied(&self, object: &mut Value, resource: &Resource) {
        match self.schema(resource) {
            Some(schema) => schema.fill_defaults(object),
            None => self.normalise(object, resource),
        }
    }

    /// Returns a stored object as readers see it.
    pub(crate) fn read_form(&self, encoded: &Value, resource: &Resource) -> Value {
        let mut out = encoded.clone();
        self.normalise(&mut out, resource);
        for_storage(&mut out, resource);
        out
    }

    /// Remembers the stored form of an object if readers see another one, and returns what readers see. Built-in objects
    /// are stored without empty values: they have one form.
    pub(crate) fn encode(&mut self, key: &Key, encoded: Value, resource: &Resource) -> Value {
        self.forget_encoded(key);
        if !resource.traits.custom {
            return encoded;
        }
        let shown = self.read_form(&encoded, resource);
        if shown != encoded {
            Arc::make_mut(&mut self.encoded).insert(key.clone(), Arc::new(encoded));
        }
        shown
    }

    pub(crate) fn forget_encoded(&mut self, key: &Key) {
        if self.encoded.contains_key(key) {
            Arc::make_mut(&mut self.encoded).remove(key);
        }
    }

    /// Returns true if the store has an object in just this form, so that a write of it is left out.
    ///
    /// The API server compares a write with the object of its watch cache, encoded again, and then with what is stored. An object
    /// whose stored form is another than its readers' is therefore written again each time.
    pub(crate) fn stores(&self, target: &Target, live: &Value, encoded: &Value) -> bool {
        let stored = self.encoded.get(&target.key());
        same_but_version(live, encoded)
            && stored.is_none_or(|stored| same_but_version(&target.resource.at_version(stored), encoded))
    }
}

/// Returns true if two objects are equal apart from their resource versions, which are not stored.
fn same_but_version(left: &Value, right: &Value) -> bool {
    let without = |object: &Value| {
        let mut object = object.clone();
        metadata(&mut object).remove("resourceVersion");
        object
    };
    without(left) == without(right)
}

/// Takes the times of managers back if nothing but them differs: an update that changes nothing is no write.
pub(crate) fn keep_times(new: &mut Value, live: &Value, resource: &Resource) {
    let timeless = |object: &Value| {
        let mut object = object.clone();
        for_storage(&mut object, resource);
        let managers = object.pointer_mut("/metadata/managedFields");
        for entry in managers.and_then(Value::as_array_mut).into_iter().flatten() {
            as_map(entry).remove("time");
        }
        object
    };
    if timeless(new) == timeless(live) {
        let managers = live.pointer("/metadata/managedFields").cloned();
        set(metadata(new), "managedFields", managers);
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
