//! Helpers about objects on the cluster: identities, owners, and names for messages.

use std::sync::Arc;

use olm_api::keys;
use serde_json::Value;

/// Adds a sentence for each wanted object that no active revision controls, or that an archived revision still owns.
pub(super) fn compare_owners(name: &str, wanted: &[Value], objects: &[Arc<Value>], out: &mut Vec<String>) {
    for object in wanted {
        let live = objects.iter().find(|live| same(object, live));
        let owners = live.and_then(|live| live["metadata"]["ownerReferences"].as_array());
        let controller = owners
            .into_iter()
            .flatten()
            .find(|owner| owner["controller"] == true);
        let known = controller.is_some_and(|owner| {
            let revision = objects
                .iter()
                .find(|object| object["metadata"]["uid"] == owner["uid"]);
            revision.is_some_and(|revision| revision["spec"]["lifecycleState"] != "Archived")
        });
        let is_given_up = |owner: &Value| {
            let revision = objects
                .iter()
                .find(|object| object["metadata"]["uid"] == owner["uid"]);
            revision.is_some_and(|revision| revision["spec"]["lifecycleState"] == "Archived")
        };
        if owners.into_iter().flatten().any(is_given_up) {
            out.push(format!(
                "{} names an archived revision among its owners",
                shown(object)
            ));
        }
        if live.is_some() && !known {
            out.push(format!(
                "{} of extension {name:?} is controlled by no active revision",
                shown(object)
            ));
        }
    }
}

/// Returns true if the newest revision of an extension has not succeeded.
pub(super) fn is_rolling_out(extension: &str, objects: &[Arc<Value>]) -> bool {
    let revisions = objects.iter().filter(|object| {
        object["kind"] == "ClusterObjectSet"
            && object["metadata"]["labels"][keys::OWNER_NAME_LABEL] == extension
    });
    let newest = revisions.max_by_key(|revision| revision["spec"]["revision"].as_i64());
    let conditions = newest.and_then(|newest| newest["status"]["conditions"].as_array());
    let mut conditions = conditions.into_iter().flatten();
    newest.is_some()
        && !conditions.any(|condition| condition["type"] == "Succeeded" && condition["status"] == "True")
}

/// Returns true if both objects have the same identity. A namespace of `one` is ignored if `other` has none.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    let group = |object: &Value| {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        version.split_once('/').map_or("", |(group, _)| group).to_owned()
    };
    one["kind"] == other["kind"]
        && one["metadata"]["name"] == other["metadata"]["name"]
        && group(one) == group(other)
        && (one["metadata"]["namespace"] == other["metadata"]["namespace"]
            || other["metadata"]["namespace"].is_null())
}

pub(super) fn find<'a>(objects: &'a [Arc<Value>], kind: &str, name: &str) -> Option<&'a Arc<Value>> {
    objects
        .iter()
        .find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
}

pub(super) fn shown(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}
