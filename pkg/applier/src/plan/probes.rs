//! The probes every revision carries.

use olm_api::ProgressionProbe;
use serde_json::{Value, json};

/// For `spec.progressionProbes`: what must be true of the kinds that take time.
///
/// The `StatefulSet`'s probe asks for a condition Kubernetes never sets; it stays, as upstream's clients read it, and
/// [`crate::probe`] answers it from the replica counts.
#[must_use]
pub fn default_probes() -> Vec<ProgressionProbe> {
    // The form is fixed and read by a test.
    serde_json::from_value(list()).unwrap_or_default()
}

fn list() -> Value {
    let condition =
        |type_: &str| json!({"type": "ConditionEqual", "conditionEqual": {"type": type_, "status": "True"}});
    let phase = |value: &str| json!({"type": "FieldValue", "fieldValue": {"fieldPath": "status.phase", "value": value}});
    let updated = || json!({"type": "FieldsEqual", "fieldsEqual": {"fieldA": "status.updatedReplicas", "fieldB": "status.replicas"}});
    let probe = |group: &str, kind: &str, assertions: Vec<Value>| {
        json!({
            "selector": {"type": "GroupKind", "groupKind": {"group": group, "kind": kind}},
            "assertions": assertions,
        })
    };
    Value::Array(vec![
        probe(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            vec![condition("Established")],
        ),
        probe("cert-manager.io", "Certificate", vec![condition("Ready")]),
        probe("cert-manager.io", "Issuer", vec![condition("Ready")]),
        probe("", "Namespace", vec![phase("Active")]),
        probe("", "PersistentVolumeClaim", vec![phase("Bound")]),
        probe("apps", "StatefulSet", vec![updated(), condition("Available")]),
        probe("apps", "Deployment", vec![updated(), condition("Available")]),
    ])
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_probes_read_as_they_are_written() {
        let typed = super::default_probes();
        assert_eq!(typed.len(), 7);
        assert_eq!(serde_json::to_value(typed).unwrap(), super::list());
    }
}
