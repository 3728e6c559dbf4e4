//! Decoding of untyped objects.

use kube::core::DynamicObject;
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

/// Decodes an object of a watch. An invalid object is logged and skipped, so that it does not affect the others.
pub(crate) fn decode<K: Resource<DynamicType = ()> + DeserializeOwned>(object: &DynamicObject) -> Option<K> {
    object
        .clone()
        .try_parse()
        .inspect_err(|error| {
            tracing::warn!(kind = %K::kind(&()), name = object.name_any(), %error, "an object cannot be decoded and is skipped");
        })
        .ok()
}
