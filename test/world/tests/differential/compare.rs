//! Comparison of answers, apart from what may differ: uids, resource versions, times.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Answer of a server.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Numbers in the order of first appearance for values that two servers choose differently.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    numbers: BTreeMap<String, usize>,
    prefix: String,
}

impl Names {
    pub(crate) fn of_run(prefix: &str) -> Self {
        Self {
            numbers: BTreeMap::new(),
            prefix: format!("{prefix}-"),
        }
    }

    /// Returns the prefix of the run's cluster-scoped names.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    fn of(&mut self, prefix: &str, text: &str) -> Value {
        let next = self.numbers.len();
        let number = *self.numbers.entry(format!("{prefix}{text}")).or_insert(next);
        json!(format!("{prefix}-{number}"))
    }
}

/// Returns an answer in comparable form.
pub(crate) fn comparable(answer: &Answered, names: &mut Names) -> Value {
    let body = &answer.body;
    let prefix = names.prefix.clone();
    let shown = if body["kind"] == "Status" {
        status(body, names)
    } else if body.get("items").is_some() {
        let none = Vec::new();
        let items = body["items"].as_array().unwrap_or(&none);
        let ours = items.iter().filter(|item| is_ours(item, &prefix));
        json!({
            "kind": body["kind"], "apiVersion": body["apiVersion"],
            "items": ours.map(|item| object(item, names)).collect::<Vec<_>>(),
            "continues": body.pointer("/metadata/continue").is_some_and(|token| *token != json!("")),
            "remaining": body.pointer("/metadata/remainingItemCount"),
        })
    } else if body.is_object() {
        object(body, names)
    } else {
        body.clone()
    };
    json!({"code": answer.status, "body": shown})
}

/// Returns true for an object of the run.
pub(crate) fn is_ours(item: &Value, prefix: &str) -> bool {
    let name = item
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    name.starts_with("t-") || name.starts_with(prefix)
}

/// Returns a `Status` in comparable form.
pub(crate) fn status(body: &Value, names: &mut Names) -> Value {
    let mut fields: Vec<String> = body
        .pointer("/details/causes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(|cause| cause["field"].as_str().unwrap_or_default().to_owned())
        .collect();
    fields.sort();
    fields.dedup();
    let mut details = body["details"].clone();
    if let Some(details) = details.as_object_mut() {
        details.remove("causes");
        details.remove("retryAfterSeconds");
        if let Some(uid) = details.get("uid").and_then(Value::as_str) {
            let number = names.of("uid", uid);
            details.insert("uid".into(), number);
        }
        if body["status"] == "Failure" {
            details.remove("uid");
        }
    }
    if details == json!({}) {
        details = Value::Null;
    }
    json!({"status": body["status"], "reason": body["reason"], "fields": fields, "details": details})
}

/// Returns an object in comparable form.
pub(crate) fn object(object: &Value, names: &mut Names) -> Value {
    let mut out = object.clone();
    let Some(metadata) = out.get_mut("metadata").and_then(Value::as_object_mut) else {
        return out;
    };
    for (field, prefix) in [("uid", "uid"), ("resourceVersion", "rv")] {
        if let Some(text) = metadata.get(field).and_then(Value::as_str) {
            let number = names.of(prefix, text);
            metadata.insert(field.into(), number);
        }
    }
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if metadata.contains_key(field) {
            metadata.insert(field.into(), json!("TIME"));
        }
    }
    if let Some(Value::Array(managers)) = metadata.get_mut("managedFields") {
        for manager in managers.iter_mut().filter_map(Value::as_object_mut) {
            if manager.contains_key("time") {
                manager.insert("time".into(), json!("TIME"));
            }
        }
        managers.sort_by_key(|entry| {
            let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
            (text("operation"), text("manager"), text("subresource"))
        });
    }
    if metadata.contains_key("generateName") {
        metadata.insert("name".into(), json!("GENERATED"));
    }
    if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
        for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
            if let Some(uid) = owner.get("uid").and_then(Value::as_str) {
                let number = names.of("uid", uid);
                owner.insert("uid".into(), number);
            }
        }
    }
    out
}

/// Returns the places where two values differ.
pub(crate) fn differences(world: &Value, real: &Value) -> Vec<String> {
    let mut out = Vec::new();
    walk(world, real, "", &mut out);
    out
}

fn walk(world: &Value, real: &Value, path: &str, out: &mut Vec<String>) {
    match (world, real) {
        (Value::Object(left), Value::Object(right)) => {
            for name in left
                .keys()
                .chain(right.keys().filter(|name| !left.contains_key(*name)))
            {
                let (left, right) = (left.get(name), right.get(name));
                match (left, right) {
                    (Some(left), Some(right)) => walk(left, right, &format!("{path}/{name}"), out),
                    (left, right) => out.push(shown(&format!("{path}/{name}"), left, right)),
                }
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                walk(left, right, &format!("{path}/{at}"), out);
            }
        }
        (left, right) if left == right => {}
        (left, right) => out.push(shown(path, Some(left), Some(right))),
    }
}

fn shown(path: &str, world: Option<&Value>, real: Option<&Value>) -> String {
    let text = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
    format!(
        "{path}: the world has {}, kube-apiserver {}",
        text(world),
        text(real)
    )
}
