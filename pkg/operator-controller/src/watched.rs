//! Objects of a watch whose content stays text until a reconcile needs it.
//!
//! Parsed JSON takes several times its length in memory: an extension with its revision takes 60 kB as values, and a tenth of it as
//! text.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Resource;
use kube::discovery::ApiResource;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::decode::decoded;

/// An object of any kind with `spec` and `status`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Watched {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    api_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    pub(crate) metadata: ObjectMeta,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    spec: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    status: Option<Box<RawValue>>,
}

/// Reads a value and keeps its text. A `RawValue` cannot be read everywhere: an event of a watch may name its type after the object.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    let text = value.as_ref().map(to_raw_value).transpose();
    text.map_err(serde::de::Error::custom)
}

impl Watched {
    /// Removes a field of the spec.
    pub(crate) fn remove_from_spec(&mut self, field: &str) {
        let spec = self.spec.as_deref().map(|spec| serde_json::from_str(spec.get()));
        if let Some(Ok(Value::Object(mut spec))) = spec
            && spec.remove(field).is_some()
        {
            self.spec = to_raw_value(&spec).ok();
        }
    }

    /// Returns a hash of the status, to tell whether it changed.
    pub(crate) fn status_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.status.as_deref().map(RawValue::get).hash(&mut hasher);
        hasher.finish()
    }

    /// Decodes the object. An invalid object is logged and skipped, so that it does not affect the others.
    pub(crate) fn decode<K: Resource<DynamicType = ()> + DeserializeOwned>(&self) -> Option<K> {
        let read = serde_json::to_string(self).and_then(|text| serde_json::from_str(&text));
        decoded(self.metadata.name.as_deref(), read)
    }
}

impl Resource for Watched {
    type DynamicType = ApiResource;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.kind)
    }

    fn group(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.group)
    }

    fn version(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.version)
    }

    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.plural)
    }

    fn api_version(kind: &ApiResource) -> Cow<'_, str> {
        Cow::Borrowed(&kind.api_version)
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
    use olm_api::ClusterObjectSet;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_decoded_as_it_was_whatever_the_order_of_its_event() {
        let object = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1", "uid": "u", "labels": {"a": "b"}},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent", "phases": []},
            "status": {"conditions": []}});
        for event in [
            format!("{{\"type\":\"ADDED\",\"object\":{object}}}"),
            format!("{{\"object\":{object},\"type\":\"ADDED\"}}"),
        ] {
            let WatchEvent::Added(mut watched) = serde_json::from_str::<WatchEvent<Watched>>(&event).unwrap()
            else {
                panic!("{event}");
            };
            assert_eq!(serde_json::to_value(&watched).unwrap(), object);
            watched.remove_from_spec("phases");
            watched.remove_from_spec("absent");
            let set: ClusterObjectSet = watched.decode().unwrap();
            assert_eq!((set.spec.revision, set.spec.phases), (1, None));
            assert_eq!(set.status.map(|status| status.conditions().len()), Some(0));
        }
        let odd = json!({"metadata": {"name": "x"}, "spec": {"revision": "one"}, "status": null});
        let odd: Watched = serde_json::from_value(odd).unwrap();
        assert!(odd.decode::<ClusterObjectSet>().is_none());
    }
}
