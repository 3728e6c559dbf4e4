//! Objects of a revision in the form in which they are applied.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use olm_api::{CollisionProtection, keys};
use olm_bundle::escaped_json;
use olm_bundle::permissions::is_aggregated;
use serde_json::{Value, json};

use super::Id;

/// An object with the marks of its revision, prepared once for all reconciles.
#[derive(Clone, Debug)]
pub struct PreparedObject {
    pub(super) id: Id,
    /// The object as it is sent to the API server, without owner references.
    pub(super) desired: Value,
    /// Hash of `desired`.
    pub(super) hash: u64,
    pub(super) protection: CollisionProtection,
}

impl PreparedObject {
    /// Returns `object` with the marks of revision `number` of the ClusterExtension `owner_name`.
    #[must_use]
    pub fn new(object: Value, protection: CollisionProtection, owner_name: &str, number: i64) -> Self {
        let id = Id::of(&object);
        let mut desired = object;
        // A revision whose metadata is no object is never applied, but prepared all the same.
        if let Some(meta) = desired.get_mut("metadata").filter(|meta| meta.is_object()) {
            if id.namespace.is_empty()
                && let Some(meta) = meta.as_object_mut()
            {
                meta.remove("namespace");
            }
            // Indexing a JSON object by a missing key inserts the key.
            if !meta.get("labels").is_some_and(Value::is_object) {
                meta["labels"] = json!({});
            }
            if !meta.get("annotations").is_some_and(Value::is_object) {
                meta["annotations"] = json!({});
            }
            meta["labels"][keys::MANAGED_BY_LABEL] = json!(keys::MANAGED_BY_VALUE);
            meta["labels"][keys::OWNER_NAME_LABEL] = json!(owner_name);
            meta["annotations"][keys::REVISION_ANNOTATION] = json!(number.to_string());
        }
        if id.kind == "ClusterRole"
            && is_aggregated(&desired)
            && let Some(role) = desired.as_object_mut()
        {
            // An apply of them would be overwritten, and repeated for ever.
            role.remove("rules");
        }
        let mut hasher = DefaultHasher::new();
        escaped_json(&desired).hash(&mut hasher);
        Self {
            id,
            hash: hasher.finish(),
            desired,
            protection,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(object: &Value, owner_name: &str, number: i64) -> PreparedObject {
        PreparedObject::new(object.clone(), CollisionProtection::Prevent, owner_name, number)
    }

    #[test]
    fn prepared_objects_carry_the_marks_of_their_revision() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {"name": "config", "namespace": "system", "labels": {"app": "x"}}});
        let prepared = prepare(&object, "extension", 7);
        let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {"name": "config", "namespace": "system",
                "labels": {"app": "x", keys::MANAGED_BY_LABEL: keys::MANAGED_BY_VALUE, keys::OWNER_NAME_LABEL: "extension"},
                "annotations": {keys::REVISION_ANNOTATION: "7"}}});
        assert_eq!(prepared.desired, expected);
        assert_eq!(prepared.id.report(), "ConfigMap.v1 system/config");
    }

    #[test]
    fn webhook_configurations_lose_their_namespace() {
        let object = json!({"apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "hook", "namespace": "system"}});
        let prepared = prepare(&object, "extension", 1);
        assert_eq!(prepared.desired.pointer("/metadata/namespace"), None);
    }

    #[test]
    fn metadata_that_is_no_object_stays_as_it_is() {
        for metadata in [json!("x"), json!([]), json!(1), Value::Null] {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            assert_eq!(prepare(&object, "extension", 1).desired, object);
        }
        for fields in [json!("x"), json!([]), Value::Null] {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "labels": fields, "annotations": fields}});
            let prepared = prepare(&object, "extension", 1).desired;
            assert_eq!(
                prepared["metadata"]["labels"][keys::OWNER_NAME_LABEL],
                "extension"
            );
            assert_eq!(
                prepared["metadata"]["annotations"][keys::REVISION_ANNOTATION],
                "1"
            );
        }
    }

    #[test]
    fn rules_of_aggregated_roles_are_left_to_the_control_plane() {
        let role = |aggregation: Value| {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"},
                "aggregationRule": aggregation, "rules": []})
        };
        let aggregated = role(json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}));
        assert_eq!(prepare(&aggregated, "extension", 1).desired.get("rules"), None);
        let plain = role(Value::Null);
        assert_eq!(prepare(&plain, "extension", 1).desired["rules"], json!([]));
    }

    #[test]
    fn hashes_differ_exactly_if_the_objects_differ() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {"name": "config", "namespace": "system"}});
        let other: Value = serde_json::from_str(&object.to_string()).unwrap();
        let hash = prepare(&object, "extension", 1).hash;
        assert_eq!(hash, prepare(&other, "extension", 1).hash);
        let mut changed = object.clone();
        changed["data"]["a"] = json!("c");
        assert_ne!(hash, prepare(&changed, "extension", 1).hash);
        assert_ne!(hash, prepare(&object, "extension", 2).hash);
        assert_ne!(hash, prepare(&object, "other", 1).hash);
    }
}
