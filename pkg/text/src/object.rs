//! Identity of Kubernetes objects in manifests.

use serde_json::Value;

/// Identity of an object. Fields that the manifest lacks are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version without the group.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

impl<'a> ObjectId<'a> {
    /// Returns the identity of `object`.
    #[must_use]
    pub fn of(object: &'a Value) -> Self {
        let (group, version) = group_version(string(object.get("apiVersion")));
        let metadata = |key| string(object.get("metadata").and_then(|metadata| metadata.get(key)));
        Self {
            group,
            version,
            kind: string(object.get("kind")),
            namespace: metadata("namespace"),
            name: metadata("name"),
        }
    }
}

/// Splits an `apiVersion` into group and version.
#[must_use]
pub fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Returns `metadata.name` of `object`, or an empty string.
#[must_use]
pub fn metadata_name(object: &Value) -> &str {
    ObjectId::of(object).name
}

/// Returns the string at a JSON pointer of `object`, or an empty string.
#[must_use]
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    string(object.pointer(pointer))
}

fn string(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn identity_of_a_manifest() {
        let object =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": 1}});
        let id = ObjectId::of(&object);
        assert_eq!((id.group, id.version, id.kind), ("apps", "v1", "Deployment"));
        assert_eq!((id.namespace, id.name), ("", "a"));
        assert_eq!(group_version("v1"), ("", "v1"));
    }
}
