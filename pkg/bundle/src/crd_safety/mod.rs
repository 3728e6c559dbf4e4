//! Whether a CRD may replace another without breaking the objects that exist.

use serde_json::Value;

/// One reason why an upgrade of a CRD is unsafe.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The version, or pair of versions, and the field; empty when the whole CRD is meant.
    pub path: String,
    /// Name of the rule, as in BEHAVIOUR.
    pub rule: String,
    /// What changed.
    pub message: String,
}

/// Compares `old`, as it is on the cluster, with `new`. No finding means that the upgrade is safe.
pub fn check(old: &Value, new: &Value) -> Vec<Finding> {
    let _ = (old, new);
    Vec::new()
}
