//! Comparison of an object on the cluster with the desired state. Pure.
//!
//! Invariant: in doubt the objects differ; a superfluous apply is harmless.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use olm_api::keys;
use serde_json::Value;

/// Returns true if `live` has every field of `desired` and this controller applied them.
#[must_use]
pub fn is_applied(live: &DynamicObject, desired: &Value) -> bool {
    if !applied_by_controller(&live.metadata) {
        return false;
    }
    let Some(desired) = desired.as_object() else {
        return false;
    };
    desired.iter().all(|(key, wanted)| match key.as_str() {
        "apiVersion" | "kind" => true,
        "metadata" => metadata_contains(&live.metadata, wanted),
        _ => live.data.get(key).is_some_and(|value| contains(value, wanted)),
    })
}

/// Returns true if this controller applied the object: a copy or a restored backup has the values without the field
/// ownership.
fn applied_by_controller(meta: &ObjectMeta) -> bool {
    meta.managed_fields.iter().flatten().any(|entry| {
        entry.manager.as_deref() == Some(keys::OBJECT_FIELD_MANAGER)
            && entry.operation.as_deref() == Some("Apply")
    })
}

fn metadata_contains(live: &ObjectMeta, wanted: &Value) -> bool {
    ["labels", "annotations"].into_iter().all(|key| {
        let have = match key {
            "labels" => &live.labels,
            _ => &live.annotations,
        };
        let wanted = wanted.get(key).and_then(Value::as_object);
        wanted.into_iter().flatten().all(|(key, value)| {
            let have = have.as_ref().and_then(|all| all.get(key));
            have.map(String::as_str) == value.as_str()
        })
    })
}

/// Compares maps by key, lists by entry, and other values by equality. Fields that the API server adds are no
/// difference.
fn contains(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| match live.get(key) {
                Some(live) => contains(live, wanted),
                None => wanted.is_null(),
            })
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len()
                && live
                    .iter()
                    .zip(wanted)
                    .all(|(live, wanted)| contains(live, wanted))
        }
        _ => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live(manager: &str, spec: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "d", "labels": {"a": "b", "mine": "kept"},
                "managedFields": [{"manager": manager, "operation": "Apply"}]},
            "spec": spec, "status": {"replicas": 1},
        }))
        .unwrap()
    }

    #[test]
    fn additions_are_no_difference_and_changes_are() {
        let wanted = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": {"a": "b"}},
            "spec": {"template": {"metadata": {"creationTimestamp": null}, "containers": [{"image": "x"}]}}});
        let is_same = |manager: &str, spec: Value| is_applied(&live(manager, &spec), &wanted);
        let ours = keys::OBJECT_FIELD_MANAGER;
        let full =
            json!({"replicas": 1, "template": {"metadata": {}, "containers": [{"image": "x", "name": "c"}]}});
        assert!(is_same(ours, full.clone()));
        assert!(!is_same("kubectl", full), "nobody applied it for us");
        assert!(!is_same(
            ours,
            json!({"template": {"metadata": {}, "containers": [{"image": "y"}]}})
        ));
        assert!(!is_same(
            ours,
            json!({"template": {"metadata": {}, "containers": []}})
        ));
        assert!(!is_same(ours, json!({})));
        let mut other = wanted.clone();
        other["metadata"]["labels"]["a"] = json!("c");
        let full = json!({"template": {"metadata": {}, "containers": [{"image": "x"}]}});
        assert!(!is_applied(&live(ours, &full), &other));
    }
}
