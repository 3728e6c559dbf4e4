//! Whether an object on the cluster already holds all that a revision sets, so that applying it again would change nothing. Pure.
//!
//! Invariant: in doubt the answer is no; applying once too often is harmless.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use olm_api::keys;
use serde_json::Value;

/// Whether `live` holds every field of `desired` and these were applied by us.
#[must_use]
pub fn is_applied(live: &DynamicObject, desired: &Value) -> bool {
    if !applied_by_us(&live.metadata) {
        return false;
    }
    let Some(desired) = desired.as_object() else {
        return false;
    };
    desired.iter().all(|(key, wanted)| match key.as_str() {
        "apiVersion" | "kind" => true,
        "metadata" => metadata_holds(&live.metadata, wanted),
        _ => live.data.get(key).is_some_and(|value| holds(value, wanted)),
    })
}

/// An object that is a copy, or was restored from a backup, has the values without their being ours.
fn applied_by_us(meta: &ObjectMeta) -> bool {
    meta.managed_fields.iter().flatten().any(|entry| {
        entry.manager.as_deref() == Some(keys::OBJECT_FIELD_MANAGER)
            && entry.operation.as_deref() == Some("Apply")
    })
}

fn metadata_holds(live: &ObjectMeta, wanted: &Value) -> bool {
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

/// Maps key by key; lists entry by entry; anything else as it is. What the API server adds by itself is no difference.
fn holds(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| match live.get(key) {
                Some(live) => holds(live, wanted),
                None => wanted.is_null(),
            })
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| holds(live, wanted))
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
    fn what_is_added_is_no_difference_and_what_is_changed_is() {
        let wanted = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": {"a": "b"}},
            "spec": {"template": {"metadata": {"creationTimestamp": null}, "containers": [{"image": "x"}]}}});
        let same = |manager: &str, spec: Value| is_applied(&live(manager, &spec), &wanted);
        let ours = keys::OBJECT_FIELD_MANAGER;
        let full =
            json!({"replicas": 1, "template": {"metadata": {}, "containers": [{"image": "x", "name": "c"}]}});
        assert!(same(ours, full.clone()));
        assert!(!same("kubectl", full), "nobody applied it for us");
        assert!(!same(
            ours,
            json!({"template": {"metadata": {}, "containers": [{"image": "y"}]}})
        ));
        assert!(!same(
            ours,
            json!({"template": {"metadata": {}, "containers": []}})
        ));
        assert!(!same(ours, json!({})));
        let mut other = wanted.clone();
        other["metadata"]["labels"]["a"] = json!("c");
        let full = json!({"template": {"metadata": {}, "containers": [{"image": "x"}]}});
        assert!(!is_applied(&live(ours, &full), &other));
    }
}
