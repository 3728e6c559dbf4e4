//! Validation of metadata and of the fields that the controllers depend on.

use serde_json::{Map, Value, json};

use super::names;
use crate::kinds::Resource;
use crate::status::Cause;
use crate::value::{finalizers, is_deleting, items, text};
use crate::world::{Target, World};

/// Maximum size of all annotations, in bytes.
const ANNOTATIONS: usize = 256 * 1024;

/// Returns the defects of a new object.
pub(crate) fn creation(world: &World, object: &Value, target: &Target) -> Vec<Cause> {
    let mut out = metadata(object, &target.resource);
    kind(object, None, &target.resource, &mut out);
    if let Some(schema) = world.schema(&target.resource) {
        schema.check(object, None, &mut out);
    }
    out
}

/// Returns the defects of a new state of an object.
pub(crate) fn update(world: &World, new: &Value, live: &Value, target: &Target) -> Vec<Cause> {
    let mut out = metadata(new, &target.resource);
    for name in ["name", "namespace", "uid"] {
        let value = &new["metadata"][name];
        if *value != live["metadata"][name] {
            out.push(Cause::invalid(
                format!("metadata.{name}"),
                value,
                "field is immutable",
            ));
        }
    }
    if is_deleting(live) {
        let old = finalizers(live);
        let added: Vec<&str> = finalizers(new)
            .into_iter()
            .filter(|name| !old.contains(name))
            .collect();
        if !added.is_empty() {
            out.push(Cause::new(
                "FieldValueForbidden",
                "metadata.finalizers",
                format!(
                    "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {}",
                    json!(added)
                ),
            ));
        }
    }
    kind(new, Some(live), &target.resource, &mut out);
    if let Some(schema) = world.schema(&target.resource) {
        schema.check(new, Some(live), &mut out);
    }
    out
}

fn metadata(object: &Value, resource: &Resource) -> Vec<Cause> {
    let mut out = Vec::new();
    if object["kind"] != *resource.kind {
        let why = format!("must be {}", resource.kind);
        out.push(Cause::invalid("kind", &object["kind"], &why));
        // The API server validates no metadata of an object of a wrong kind.
        return out;
    }
    let name = text(object, "/metadata/name");
    if name.is_empty() {
        out.push(Cause::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else if !valid_name(name, resource) {
        out.push(Cause::invalid(
            "metadata.name",
            &json!(name),
            "the name is not valid for its kind",
        ));
    }
    let none = Map::new();
    let map = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_object)
            .unwrap_or(&none)
    };
    for (key, value) in map("/metadata/labels") {
        if !names::is_qualified(key) {
            out.push(Cause::invalid(
                "metadata.labels",
                &json!(key),
                "name part is not valid",
            ));
        }
        if !value.as_str().is_some_and(names::is_label_value) {
            out.push(Cause::invalid(
                "metadata.labels",
                value,
                "a valid label must be alphanumeric",
            ));
        }
    }
    let mut size = 0;
    for (key, value) in map("/metadata/annotations") {
        size += key.len() + value.as_str().unwrap_or_default().len();
        if !names::is_qualified(&key.to_lowercase()) {
            out.push(Cause::invalid(
                "metadata.annotations",
                &json!(key),
                "name part is not valid",
            ));
        }
    }
    if size > ANNOTATIONS {
        out.push(Cause::new(
            "FieldValueTooLong",
            "metadata.annotations",
            format!("Too long: may not be more than {ANNOTATIONS} bytes"),
        ));
    }
    finalizer_names(object, resource, &mut out);
    owners(object, &mut out);
    out
}

fn finalizer_names(object: &Value, resource: &Resource, out: &mut Vec<Cause>) {
    // Other groups warn only.
    let strict = matches!(resource.group.as_str(), "" | "apps" | "rbac.authorization.k8s.io");
    let all = finalizers(object);
    for (at, name) in all.iter().enumerate() {
        if !names::is_qualified(name) {
            out.push(Cause::invalid(
                "metadata.finalizers",
                &json!(name),
                "name part is not valid",
            ));
        } else if strict
            && !name.contains('/')
            && !matches!(*name, "orphan" | "foregroundDeletion" | "kubernetes")
        {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            out.push(Cause::invalid(
                format!("metadata.finalizers[{at}]"),
                &json!(name),
                why,
            ));
        }
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        out.push(Cause::invalid("metadata.finalizers", &json!(all), why));
    }
}

fn owners(object: &Value, out: &mut Vec<Cause>) {
    let mut controllers = 0;
    for owner in items(object, "/metadata/ownerReferences") {
        let path = "metadata.ownerReferences";
        for name in ["apiVersion", "kind", "name", "uid"] {
            let value = text(owner, &format!("/{name}"));
            if value.is_empty() {
                out.push(Cause::invalid(
                    format!("{path}.{name}"),
                    &json!(value),
                    "must not be empty",
                ));
            }
        }
        if owner["controller"] == true {
            controllers += 1;
        }
    }
    if controllers > 1 {
        let why = "Only one reference can have Controller set to true";
        let all = object["metadata"]["ownerReferences"].clone();
        out.push(Cause::invalid("metadata.ownerReferences", &all, why));
    }
}

fn valid_name(name: &str, resource: &Resource) -> bool {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("rbac.authorization.k8s.io", _) => names::is_segment(name),
        ("", "Namespace") => names::is_label(name),
        ("", "Service") => names::is_service(name),
        _ => names::is_subdomain(name),
    }
}

fn binding(new: &Value, live: Option<&Value>, out: &mut Vec<Cause>) {
    let role = |name: &str| text(new, &format!("/roleRef/{name}"));
    let kinds: &[&str] = if new["kind"] == "ClusterRoleBinding" {
        &["ClusterRole"]
    } else {
        &["Role", "ClusterRole"]
    };
    if !kinds.contains(&role("kind")) {
        out.push(Cause::new(
            "FieldValueNotSupported",
            "roleRef.kind",
            format!("Unsupported value: {:?}", role("kind")),
        ));
    }
    if role("name").is_empty() {
        out.push(Cause::required("roleRef.name", ""));
    }
    for (at, subject) in items(new, "/subjects").iter().enumerate() {
        if text(subject, "/name").is_empty() {
            out.push(Cause::required(format!("subjects[{at}].name"), ""));
        }
        if subject["kind"] == "ServiceAccount" && text(subject, "/namespace").is_empty() {
            out.push(Cause::required(format!("subjects[{at}].namespace"), ""));
        }
    }
    if live.is_some_and(|live| live["roleRef"] != new["roleRef"]) {
        out.push(Cause::invalid(
            "roleRef",
            &new["roleRef"],
            "cannot change roleRef",
        ));
    }
}

fn rules(new: &Value, out: &mut Vec<Cause>) {
    for (at, rule) in items(new, "/rules").iter().enumerate() {
        let has = |name: &str| !items(rule, &format!("/{name}")).is_empty();
        if !has("verbs") {
            out.push(Cause::required(
                format!("rules[{at}].verbs"),
                "verbs must contain at least one value",
            ));
        }
        if has("nonResourceURLs") {
            continue;
        }
        for (name, why) in [
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if !has(name) {
                out.push(Cause::required(format!("rules[{at}].{name}"), why));
            }
        }
    }
}

/// Adds the defects of fields that a kind does not let change or requires.
fn kind(new: &Value, live: Option<&Value>, resource: &Resource, out: &mut Vec<Cause>) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "ConfigMap" | "Secret") => content(new, live, resource, out),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(new, live, out),
        ("rbac.authorization.k8s.io", _) => rules(new, out),
        ("apps", "Deployment")
            if live.is_some_and(|live| live.pointer("/spec/selector") != new.pointer("/spec/selector")) =>
        {
            out.push(Cause::invalid(
                "spec.selector",
                &new["spec"]["selector"],
                "field is immutable",
            ));
        }
        _ => {}
    }
}

fn content(new: &Value, live: Option<&Value>, resource: &Resource, out: &mut Vec<Cause>) {
    let none = Map::new();
    for field in ["data", "binaryData"] {
        for key in new.get(field).and_then(Value::as_object).unwrap_or(&none).keys() {
            let good = !key.is_empty()
                && key.len() <= 253
                && !matches!(key.as_str(), "." | "..")
                && !key.starts_with("..")
                && key
                    .bytes()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'));
            if !good {
                out.push(Cause::invalid(
                    format!("{field}[{key}]"),
                    &json!(key),
                    "a valid config key must consist of alphanumeric characters",
                ));
            }
        }
    }
    let Some(live) = live else { return };
    if live["immutable"] == true {
        let changed = |name: &str| new[name] != live[name];
        if new["immutable"] != true {
            out.push(Cause::new(
                "FieldValueForbidden",
                "immutable",
                "Forbidden: field is immutable when `immutable` is set",
            ));
        }
        for field in ["data", "binaryData"] {
            if changed(field) {
                out.push(Cause::new(
                    "FieldValueForbidden",
                    field,
                    "Forbidden: field is immutable when `immutable` is set",
                ));
            }
        }
    }
    if resource.kind == "Secret" && new["type"] != live["type"] {
        out.push(Cause::invalid("type", &new["type"], "field is immutable"));
    }
}
