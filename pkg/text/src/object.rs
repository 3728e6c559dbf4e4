//! Identity of Kubernetes objects in manifests.

use serde_json::{Map, Value};

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

    /// Returns true for a CustomResourceDefinition.
    #[must_use]
    pub fn is_crd(&self) -> bool {
        self.group == "apiextensions.k8s.io" && self.kind == "CustomResourceDefinition"
    }

    /// Returns the namespace in which an API server stores the object. Bundles give their webhook configurations a namespace, which means
    /// nothing there: the whole group is cluster-scoped.
    #[must_use]
    pub fn stored_namespace(&self) -> &'a str {
        match self.group {
            "admissionregistration.k8s.io" => "",
            _ => self.namespace,
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

/// Returns `object` as a manifest: without its status and without the metadata that API servers set. Of the metadata, name, namespace,
/// labels and annotations stay, except empty ones and the annotations `dropped`.
#[must_use]
pub fn manifest(object: Value, dropped: &[&str]) -> Value {
    let Value::Object(mut object) = object else {
        return object;
    };
    object.remove("status");
    let mut metadata = match object.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    let mut kept = Map::new();
    for key in ["name", "namespace"] {
        if let Some(Value::String(value)) = metadata.remove(key)
            && !value.is_empty()
        {
            kept.insert(key.to_owned(), Value::String(value));
        }
    }
    for key in ["labels", "annotations"] {
        if let Some(Value::Object(mut map)) = metadata.remove(key) {
            map.retain(|name, _| key == "labels" || !dropped.contains(&name.as_str()));
            if !map.is_empty() {
                kept.insert(key.to_owned(), Value::Object(map));
            }
        }
    }
    object.insert("metadata".to_owned(), Value::Object(kept));
    Value::Object(object)
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
        let webhook =
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"namespace": "n"}});
        assert_eq!(ObjectId::of(&webhook).stored_namespace(), "");
        let map = json!({"apiVersion": "v1", "metadata": {"namespace": "n"}});
        assert_eq!(ObjectId::of(&map).stored_namespace(), "n");
        assert_eq!(group_version("v1"), ("", "v1"));
    }

    #[test]
    fn a_manifest_has_nothing_of_the_server() {
        let object = json!({"kind": "A", "status": {"a": 1}, "data": {}, "metadata": {
            "name": "a", "namespace": "", "uid": "u", "managedFields": [], "labels": {},
            "annotations": {"keep": "1", "drop": "2"}}});
        assert_eq!(
            manifest(object, &["drop"]),
            json!({"kind": "A", "data": {}, "metadata": {"name": "a", "annotations": {"keep": "1"}}})
        );
        assert_eq!(manifest(json!({}), &[]), json!({"metadata": {}}));
        assert_eq!(manifest(json!(1), &[]), json!(1));
    }
}
