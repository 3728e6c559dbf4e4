//! Probes of revisions.

use olm_api::condition::external::{ApiService, CertManager, Crd, Workload};
use olm_api::{ConditionStatus, ProgressionProbe};
use olm_text::object::ObjectId;
use serde_json::{Value, json};

use super::Phase;

/// Returns `spec.progressionProbes` of a revision with these phases: the default ones, and those of kinds that upstream
/// does not install. Without such kinds, the revision is equal to upstream's.
#[must_use]
pub fn probes_of(phases: &[Phase]) -> Vec<ProgressionProbe> {
    let mut probes = default_probes();
    let mut ids = phases.iter().flat_map(|phase| &phase.objects).map(ObjectId::of);
    if ids.any(|id| (id.group, id.kind) == API_SERVICE) {
        // A test parses this constant probe.
        probes.extend(serde_json::from_value(api_service()));
    }
    probes
}

const API_SERVICE: (&str, &str) = ("apiregistration.k8s.io", "APIService");

fn api_service() -> Value {
    probe(
        API_SERVICE.0,
        API_SERVICE.1,
        &[condition(ApiService::Available.as_str())],
    )
}

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
    let phase = |value: &str| json!({"type": "FieldValue", "fieldValue": {"fieldPath": "status.phase", "value": value}});
    let updated = || json!({"type": "FieldsEqual", "fieldsEqual": {"fieldA": "status.updatedReplicas", "fieldB": "status.replicas"}});
    Value::Array(vec![
        probe(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            &[condition(Crd::Established.as_str())],
        ),
        probe(
            "cert-manager.io",
            "Certificate",
            &[condition(CertManager::Ready.as_str())],
        ),
        probe(
            "cert-manager.io",
            "Issuer",
            &[condition(CertManager::Ready.as_str())],
        ),
        probe("", "Namespace", &[phase("Active")]),
        probe("", "PersistentVolumeClaim", &[phase("Bound")]),
        probe(
            "apps",
            "StatefulSet",
            &[updated(), condition(Workload::Available.as_str())],
        ),
        probe(
            "apps",
            "Deployment",
            &[updated(), condition(Workload::Available.as_str())],
        ),
    ])
}

fn condition(type_: &str) -> Value {
    json!({"type": "ConditionEqual", "conditionEqual": {"type": type_, "status": ConditionStatus::True}})
}

fn probe(group: &str, kind: &str, assertions: &[Value]) -> Value {
    json!({
        "selector": {"type": "GroupKind", "groupKind": {"group": group, "kind": kind}},
        "assertions": assertions,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::plan::Phase;

    #[test]
    fn api_services_have_a_probe_of_their_own() {
        let phase = |kind: &str| Phase {
            name: "publish".to_owned(),
            objects: vec![
                json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "a"}}),
            ],
        };
        let default = super::default_probes();
        assert_eq!(super::probes_of(&[phase("Other")]), default);
        let probes = super::probes_of(&[phase("APIService")]);
        assert_eq!(probes.len(), default.len() + 1);
        assert_eq!(serde_json::to_value(probes.last()).unwrap(), super::api_service());
    }

    #[test]
    fn the_probes_parse_without_loss() {
        let typed = super::default_probes();
        assert_eq!(typed.len(), 7);
        assert_eq!(serde_json::to_value(typed).unwrap(), super::list());
    }
}
