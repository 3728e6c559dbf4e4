//! Conversion of CRD manifests of any version to the structures of `apiextensions.k8s.io/v1`.

use serde_json::Value;

use crate::shape::{CRD, shapes};

/// Drops fields that `v1` does not know, such as the schema of a `v1beta1` CRD, like upstream.
pub(super) fn normalize(object: &Value) -> Result<Value, String> {
    shapes().normalize(CRD, object)
}
