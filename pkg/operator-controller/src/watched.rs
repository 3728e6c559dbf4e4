//! Objects of a watch whose content stays text until a reconcile needs it.
//!
//! Parsed JSON takes several times its length in memory: an extension with its revision takes 60 kB as values, and a tenth of it as
//! text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Resource;
use olm_api::{ClusterExtension, ClusterObjectSet};
use olm_applier::watch::without_managed_fields;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::decode::decoded;
use crate::json_text::text;

/// An object of kind `K` with `spec` and `status`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Watched<K> {
    #[serde(deserialize_with = "without_managed_fields")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    spec: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    status: Option<Box<RawValue>>,
    #[serde(skip)]
    kind: PhantomData<fn() -> K>,
}

/// An extension of a watch.
pub(crate) type WatchedExtension = Watched<ClusterExtension>;
/// A revision of a watch.
pub(crate) type WatchedRevision = Watched<ClusterObjectSet>;

impl<K> Watched<K> {
    /// Removes fields of the spec.
    fn remove_from_spec(&mut self, unwanted: &[&str]) {
        let spec = self.spec.as_deref().map(RawValue::get);
        let fields = spec.map(serde_json::from_str::<BTreeMap<String, &RawValue>>);
        if let Some(Ok(mut fields)) = fields {
            fields.retain(|field, _| !unwanted.contains(&field.as_str()));
            self.spec = to_raw_value(&fields).ok();
        }
    }

    /// Returns the object without its spec and its status.
    pub(crate) fn without_content(self) -> Self {
        Self {
            spec: None,
            status: None,
            ..self
        }
    }

    /// Returns a hash of the status, to tell whether it changed.
    pub(crate) fn status_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.status.as_deref().map(RawValue::get).hash(&mut hasher);
        hasher.finish()
    }
}

impl<K: Resource<DynamicType = ()> + DeserializeOwned> Watched<K> {
    /// Decodes the object. An invalid object is logged and skipped, so that it does not affect the others.
    pub(crate) fn decode(&self) -> Option<K> {
        let read = serde_json::to_string(self).and_then(|text| serde_json::from_str(&text));
        decoded(self.metadata.name.as_deref(), read)
    }
}

impl WatchedRevision {
    /// Decodes the revision without its objects and probes, which take most of the memory.
    pub(crate) fn decode_head(&self) -> Option<ClusterObjectSet> {
        let mut head = self.clone();
        head.remove_from_spec(&["phases", "progressionProbes"]);
        head.decode()
    }

    /// Returns the number of the revision; 0 if it cannot be read.
    pub(crate) fn number(&self) -> i64 {
        #[derive(Deserialize)]
        struct Numbered {
            revision: i64,
        }
        let spec = self.spec.as_deref().map(RawValue::get);
        let read = spec.and_then(|spec| serde_json::from_str::<Numbered>(spec).ok());
        read.map_or(0, |spec| spec.revision)
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Watched<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        K::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        K::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        K::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        K::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use kube::core::WatchEvent;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_decoded_as_it_was_whatever_the_order_of_its_event() {
        let object = json!({
            "metadata": {"name": "x-1", "uid": "u", "labels": {"a": "b"}},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent", "phases": []},
            "status": {"conditions": []}});
        let mut sent = object.clone();
        sent["kind"] = json!("ClusterObjectSet");
        sent["metadata"]["managedFields"] = json!([{"manager": "m", "fieldsV1": {"f:metadata": {}}}]);
        for event in [
            format!("{{\"type\":\"ADDED\",\"object\":{sent}}}"),
            format!("{{\"object\":{sent},\"type\":\"ADDED\"}}"),
        ] {
            let WatchEvent::<WatchedRevision>::Added(watched) = serde_json::from_str(&event).unwrap() else {
                panic!("{event}");
            };
            assert_eq!(serde_json::to_value(&watched).unwrap(), object);
            let (whole, head) = (watched.decode().unwrap(), watched.decode_head().unwrap());
            assert_eq!((whole.spec.phases.is_some(), head.spec.phases), (true, None));
            assert_eq!(
                (whole.spec.revision, head.spec.revision, watched.number()),
                (1, 1, 1)
            );
            assert_eq!(head.status.map(|status| status.conditions().len()), Some(0));
        }
        let odd = json!({"metadata": {"name": "x"}, "spec": {"revision": "one"}, "status": null});
        let odd: WatchedRevision = serde_json::from_value(odd).unwrap();
        assert!(odd.decode().is_none());
    }
}
