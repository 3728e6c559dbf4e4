//! Decoding of untyped objects.

use kube::core::DynamicObject;
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

/// Decodes an object of a watch. An invalid object is logged and skipped, so that it does not affect the others.
pub(crate) fn decode<K: Resource<DynamicType = ()> + DeserializeOwned>(object: &DynamicObject) -> Option<K> {
    decoded(Some(&object.name_any()), object.clone().try_parse())
}

/// Returns the object `name`, and logs the error if it cannot be read.
pub(crate) fn decoded<K: Resource<DynamicType = ()>, E: std::fmt::Display>(
    name: Option<&str>,
    read: Result<K, E>,
) -> Option<K> {
    read.inspect_err(|error| {
        tracing::warn!(kind = %K::kind(&()), name, %error, "an object cannot be decoded and is skipped");
    })
    .ok()
}
