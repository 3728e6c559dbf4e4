//! Objects of watches without their managed fields.
//!
//! Decoded managed fields take ten times their length in memory, several times as much as the rest of the metadata, and no watch
//! reads them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta, OwnerReference, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer};

/// Maximum number of objects of one page of a list. The pages of a list show the cluster at one time, so a smaller page changes only the
/// number of requests and the memory for one answer.
pub const PAGE_SIZE: u32 = 100;

/// Metadata of an object of kind `K`, for watches of metadata.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound = "")]
pub struct SlimMeta<K> {
    #[serde(default, deserialize_with = "without_managed_fields")]
    metadata: ObjectMeta,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

impl<K: Resource> Resource for SlimMeta<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn metadata_api() -> bool {
        true
    }

    fn kind(kind: &K::DynamicType) -> Cow<'_, str> {
        K::kind(kind)
    }

    fn group(kind: &K::DynamicType) -> Cow<'_, str> {
        K::group(kind)
    }

    fn version(kind: &K::DynamicType) -> Cow<'_, str> {
        K::version(kind)
    }

    fn plural(kind: &K::DynamicType) -> Cow<'_, str> {
        K::plural(kind)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Decodes metadata without the managed fields.
///
/// # Errors
/// The value is no metadata.
pub fn without_managed_fields<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Slim::deserialize(deserializer)
}

/// Fields of the metadata; the compiler compares them with the type's.
#[derive(Deserialize)]
#[serde(remote = "ObjectMeta", rename_all = "camelCase")]
struct Slim {
    annotations: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
    generate_name: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    #[serde(skip)]
    managed_fields: Option<Vec<ManagedFieldsEntry>>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    resource_version: Option<String>,
    self_link: Option<String>,
    uid: Option<String>,
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Namespace;
    use serde_json::{Value, json};

    use super::*;

    fn metadata() -> Value {
        json!({
            "annotations": {"a": "b"}, "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 3, "deletionTimestamp": "2026-01-02T00:00:00Z", "finalizers": ["f"],
            "generateName": "x-", "generation": 4, "labels": {"c": "d"}, "name": "x", "namespace": "n",
            "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "o", "uid": "1", "controller": true}],
            "resourceVersion": "5", "selfLink": "/x", "uid": "u",
        })
    }

    #[test]
    fn all_but_the_managed_fields_is_decoded() {
        let mut object = json!({"kind": "PartialObjectMetadata", "metadata": metadata()});
        // Not even looked at: this is no list of entries.
        object["metadata"]["managedFields"] = json!({"fieldsV1": {"f:metadata": [1, "two"]}});
        let slim: SlimMeta<Namespace> = serde_json::from_value(object).unwrap();
        let full: ObjectMeta = serde_json::from_value(metadata()).unwrap();
        assert_eq!(slim.meta(), &full);
        assert_eq!(
            serde_json::to_value(&full).unwrap(),
            metadata(),
            "no field is missing above"
        );
        let empty: SlimMeta<Namespace> =
            serde_json::from_value(json!({"metadata": {"labels": null}})).unwrap();
        assert_eq!(empty.meta(), &ObjectMeta::default());
    }
}
