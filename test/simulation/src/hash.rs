//! Hashes of objects and JSON values, without the fields that differ between runs that are equal otherwise.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use olm_proof::ObjectKey;
use serde_json::Value;

/// Fields that differ between otherwise equal runs.
const UNSTABLE: [&str; 12] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastObservedTime",
    "generation",
    "observedGeneration",
    "time",
    "eventTime",
];

/// Returns the hash of an object; 0 for Events, which are no part of a state.
pub(crate) fn object(key: &ObjectKey, object: &Value) -> u64 {
    if key.kind == "Event" {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    value(object, &mut hasher);
    hasher.finish()
}

/// Adds a value to the hash, without [`UNSTABLE`] fields. The presence of a deletion timestamp counts, its time does not.
pub(crate) fn value(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if !UNSTABLE.contains(&name.as_str()) {
                    name.hash(hasher);
                    self::value(field, hasher);
                } else if name == "deletionTimestamp" {
                    name.hash(hasher);
                }
            }
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            for item in items {
                self::value(item, hasher);
            }
        }
        other => other.to_string().hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_and_versions_are_no_part_of_a_state() {
        let key = ObjectKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: None,
            name: "a".to_owned(),
        };
        let hash = |metadata: Value| object(&key, &json!({"metadata": metadata, "data": {"a": "b"}}));
        let first = hash(json!({"uid": "1", "resourceVersion": "2"}));
        assert_eq!(first, hash(json!({"uid": "2", "resourceVersion": "3"})));
        assert_ne!(first, hash(json!({"labels": {}})));
        let deleted = hash(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert_ne!(first, deleted);
        assert_eq!(
            deleted,
            hash(json!({"deletionTimestamp": "2026-01-02T00:00:00Z"}))
        );
        assert_eq!(
            object(
                &ObjectKey {
                    kind: "Event".to_owned(),
                    ..key.clone()
                },
                &json!({})
            ),
            0
        );
    }
}
