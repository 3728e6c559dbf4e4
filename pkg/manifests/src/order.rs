//! Order in which objects are applied.

use olm_text::object::ObjectId;
use serde_json::Value;

/// Kinds in the order of their application. Unlisted kinds come last: monitors, certificates and policies need the
/// objects before them, or CRDs of other operators.
const KINDS: [&str; 13] = [
    "Namespace",
    "CustomResourceDefinition",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "NetworkPolicy",
    "Service",
    "PodDisruptionBudget",
    "Issuer",
    "ClusterIssuer",
];
/// Kind that is applied after all listed ones and the certificates that it mounts.
const LAST: &str = "Deployment";

/// Sorts objects by their place; objects of the same kind by namespace and name.
pub(crate) fn sort(objects: &mut [Value]) {
    objects.sort_by(|one, other| key(one).cmp(&key(other)));
}

fn key(object: &Value) -> (usize, &str, &str, &str) {
    let id = ObjectId::of(object);
    let place = KINDS.iter().position(|kind| *kind == id.kind);
    let place = place.unwrap_or(KINDS.len() + usize::from(id.kind == LAST));
    (place, id.kind, id.namespace, id.name)
}

/// Returns true for a CustomResourceDefinition.
pub fn is_crd(object: &Value) -> bool {
    ObjectId::of(object).is_crd()
}
