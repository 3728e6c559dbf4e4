//! Comparison of the simulated API server with the real one, on the writes of operator-controller in a run.
//!
//! Before each write, a [`World`] gets the state of the real API server. Then it gets the write, and must give the same answer.
//! This shows that the simulation of the controllers runs on an API server that behaves as the real one does in real runs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use olm_harness::audit::OPERATOR_CONTROLLER;
use olm_proof::Actor;
use olm_world::{Answer, Key, Options, Request, World};
use serde_json::Value;

use crate::changes::{Effect, effects};
use crate::plans::Write;

/// Fields of the metadata whose values each API server chooses.
const OWN: [&str; 6] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
];

/// Result of the comparison.
#[derive(Debug, Default)]
pub struct Refinement {
    /// Number of writes that both API servers answered equally.
    pub equal: usize,
    /// Number of writes to kinds that the simulated API server does not know, by plural.
    pub unknown: BTreeMap<String, usize>,
    /// Sentences about writes with different answers.
    pub differences: Vec<String>,
}

/// Compares the answers of both API servers to all writes of operator-controller.
pub fn check(writes: &[Write]) -> Refinement {
    let mut world = World::new(&Options::default());
    let mut result = Refinement::default();
    for Effect { write, name, after } in effects(writes) {
        let key = Key {
            group: write.group.clone(),
            plural: write.resource.clone(),
            namespace: write.namespace.clone(),
            name,
        };
        if write.user == OPERATOR_CONTROLLER && write.verb != "deletecollection" {
            result.compare(&world, write, &key, after.as_deref());
        }
        world.restore(&key, after.as_deref().cloned());
        // Each comparison copies the world. Without watches, the history is of no use, and the copies would grow with it.
        world.compact(world.revision());
    }
    result
}

impl Refinement {
    /// Compares the answers to one write. `world` has the state before it, and `after` is the object on the real API server after
    /// it.
    fn compare(&mut self, world: &World, write: &Write, key: &Key, after: Option<&Value>) {
        let mut scratch = world.clone();
        let now = write.received.parse().unwrap_or(Timestamp::UNIX_EPOCH);
        let Answer::Response { status, body, .. } = scratch.handle(&request(write), now) else {
            return;
        };
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status == 404 && answer["kind"] != "Status" {
            *self.unknown.entry(write.resource.clone()).or_default() += 1;
            return;
        }
        let shown = format!(
            "{} {} {}/{}/{} at {}",
            write.verb, write.resource, key.namespace, key.name, write.subresource, write.received
        );
        if u64::from(status) != write.code {
            let message = &answer["message"];
            self.differences
                .push(format!("{shown}: {} there, {status} here: {message}", write.code));
            return;
        }
        // For kinds of others, the real API server sets more defaults than the simulated one, so it may have more fields.
        let simulated = scratch.object(key).map(|object| Value::clone(object));
        let difference = match (after, &simulated) {
            (Some(real), Some(simulated)) => {
                first_difference(&plain(real), &plain(simulated), key.group == olm_api::GROUP, "")
            }
            (None, None) => None,
            (Some(_), None) => Some("is gone here".to_owned()),
            (None, Some(_)) => Some("is gone there".to_owned()),
        };
        match difference {
            None => self.equal += 1,
            Some(difference) => self.differences.push(format!("{shown}: {difference}")),
        }
    }
}

/// Returns the request of a write. The audit log does not have the content type, so it is derived from the body.
fn request(write: &Write) -> Request {
    let method = match write.verb.as_str() {
        "create" => "POST",
        "update" => "PUT",
        "patch" => "PATCH",
        _ => "DELETE",
    };
    let media = match (method, &write.body) {
        ("PATCH", Value::Array(_)) => "application/json-patch+json",
        // Server-side apply requires a kind and a field manager.
        ("PATCH", body) if body["kind"].is_string() && write.uri.contains("fieldManager=") => {
            "application/apply-patch+yaml"
        }
        ("PATCH", _) => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::new(Actor::Controller(0), method, &write.uri).with_content_type(media);
    if write.body.is_null() {
        request
    } else {
        request.with_body(&write.body)
    }
}

/// Returns the object without the fields that each API server chooses. The API server writes the status of a CRD without a
/// request, so the audit log lacks it, and it is removed, too.
fn plain(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(crd) = object
        .as_object_mut()
        .filter(|o| o["kind"] == "CustomResourceDefinition")
    {
        crd.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|field, _| !OWN.contains(&field.as_str()));
    }
    object
}

/// Returns the first field in which the objects differ. If `whole` is false, the real object may have more fields.
fn first_difference(real: &Value, simulated: &Value, whole: bool, path: &str) -> Option<String> {
    match (real, simulated) {
        (Value::Object(left), Value::Object(right)) => {
            let more = left.keys().find(|key| whole && !right.contains_key(*key));
            if let Some(key) = more {
                return Some(format!("{path}.{key} is absent here"));
            }
            right.iter().find_map(|(key, value)| {
                first_difference(
                    left.get(key).unwrap_or(&Value::Null),
                    value,
                    whole,
                    &format!("{path}.{key}"),
                )
            })
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => left
            .iter()
            .zip(right)
            .enumerate()
            .find_map(|(index, (left, right))| {
                first_difference(left, right, whole, &format!("{path}[{index}]"))
            }),
        _ if real == simulated => None,
        _ => Some(format!("{path} is {real} there, {simulated} here")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_is_named_by_its_path() {
        let real = json!({"spec": {"a": [{"b": 1, "more": true}]}});
        let differs = |simulated: Value, whole: bool| first_difference(&real, &simulated, whole, "");
        assert_eq!(differs(json!({"spec": {"a": [{"b": 1}]}}), false), None);
        assert_eq!(
            differs(json!({"spec": {"a": [{"b": 1}]}}), true).as_deref(),
            Some(".spec.a[0].more is absent here")
        );
        assert_eq!(
            differs(json!({"spec": {"a": [{"b": 2}]}}), false).as_deref(),
            Some(".spec.a[0].b is 1 there, 2 here")
        );
    }
}
