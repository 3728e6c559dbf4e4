//! A CRD manifest goes through the `apiextensions.k8s.io/v1` structures, whatever version it claims.

use serde_json::Value;

use crate::shape::{CRD, shapes};

/// Fields unknown to `v1` are dropped: the schema of a `v1beta1` CRD among them, as upstream does.
pub(super) fn normalize(object: &Value) -> Result<Value, String> {
    shapes().normalize(CRD, object)
}
