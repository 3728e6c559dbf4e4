//! Default probes of revisions.

use olm_api::condition::external::{CertManager, Crd, Workload};
use olm_api::{ConditionStatus, ProgressionProbe};
use serde_json::{Value, json};

/// Returns the default `spec.progressionProbes`: readiness of the kinds that take time.
///
/// The probe of a `StatefulSet` requires a condition that Kubernetes never sets. It stays for compatibility with
/// upstream, and [`crate::probe`] evaluates it from the replica counts.
#[must_use]
pub fn default_probes() -> Vec<ProgressionProbe> {
    // A test parses this constant list.
    serde_json::from_value(list()).unwrap_or_default()
}

fn list() -> Value {
    let condition = |type_: &str| json!({"type": "ConditionEqual", "conditionEqual": {"type": type_, "status": ConditionStatus::True}});
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
            vec![condition(Crd::Established.as_str())],
        ),
        probe(
            "cert-manager.io",
            "Certificate",
            vec![condition(CertManager::Ready.as_str())],
        ),
        probe(
            "cert-manager.io",
            "Issuer",
            vec![condition(CertManager::Ready.as_str())],
        ),
        probe("", "Namespace", vec![phase("Active")]),
        probe("", "PersistentVolumeClaim", vec![phase("Bound")]),
        probe(
            "apps",
            "StatefulSet",
            vec![updated(), condition(Workload::Available.as_str())],
        ),
        probe(
            "apps",
            "Deployment",
            vec![updated(), condition(Workload::Available.as_str())],
        ),
    ])
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_probes_parse_without_loss() {
        let typed = super::default_probes();
        assert_eq!(typed.len(), 7);
        assert_eq!(serde_json::to_value(typed).unwrap(), super::list());
    }
}
