//! Objects of the manifests: present, established, available, and with the rights of the manifests.

use olm_api::condition::external::{Crd, Workload as WorkloadCondition};
use olm_api::condition::untyped;
use olm_manifests::{NAMESPACE, is_crd};
use olm_text::object::ObjectId;
use serde_json::Value;

use super::{Installation, Pair};
use crate::controllers::title;
use crate::finding::{Finding, Severity};

/// Checks the objects of an installation; one finding if nothing is installed.
pub(crate) fn check(pairs: &[Pair], installation: &Installation) -> Vec<Finding> {
    if pairs.iter().all(|pair| pair.present.is_none()) {
        return if pairs.is_empty() {
            Vec::new()
        } else {
            vec![Finding::new(
                Severity::Error,
                "the controllers",
                "they are not installed",
                Installation::default().apply(""),
            )]
        };
    }
    pairs.iter().flat_map(|pair| one(pair, installation)).collect()
}

fn one(pair: &Pair, installation: &Installation) -> Vec<Finding> {
    let title = title(&pair.expected);
    let Some(present) = &pair.present else {
        return vec![Finding::new(
            Severity::Error,
            title,
            "it does not exist",
            installation.apply(" creates it"),
        )];
    };
    let kind = ObjectId::of(&pair.expected).kind;
    match kind {
        _ if is_crd(present) => crd(&title, &pair.expected, present, installation),
        "Deployment" => deployment(&title, present, pair.problem.as_deref()),
        "ClusterRole" | "Role" => differing(pair, present, &["rules"], installation),
        "ClusterRoleBinding" | "RoleBinding" if is_for_us(&pair.expected) => {
            differing(pair, present, &["roleRef", "subjects"], installation)
        }
        // The account of Prometheus is the administrator's choice.
        "ClusterRoleBinding" | "RoleBinding" => differing(pair, present, &["roleRef"], installation),
        _ => Vec::new(),
    }
}

/// Returns true if all subjects of a binding are accounts of the installation.
fn is_for_us(binding: &Value) -> bool {
    let mut subjects = binding["subjects"].as_array().into_iter().flatten();
    subjects.all(|subject| subject["namespace"] == NAMESPACE)
}

fn crd(title: &str, expected: &Value, present: &Value, installation: &Installation) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !untyped::is_true(present, Crd::Established) {
        findings.push(Finding::new(
            Severity::Error,
            title,
            "it is not established, so its objects cannot be used",
            format!(
                "kubectl get it with -o yaml: the condition {} says which other CRD has its names",
                Crd::NamesAccepted
            ),
        ));
    }
    let versions = || present["spec"]["versions"].as_array().into_iter().flatten();
    for stored in present["status"]["storedVersions"]
        .as_array()
        .into_iter()
        .flatten()
    {
        if !versions().any(|version| version["name"] == *stored && version["served"] == true) {
            findings.push(Finding::new(Severity::Error,
                title,
                format!("version {stored} of stored objects is not served"),
                "migrate the stored objects to a served version, and remove the old one from status.storedVersions",
            ));
        }
    }
    if !covers(&present["spec"]["versions"], &expected["spec"]["versions"]) {
        findings.push(Finding::new(
            Severity::Warning,
            title,
            "its schema is not that of this kubectl olm",
            format!(
                "use the release of kubectl olm that fits the controllers, or upgrade them: {}",
                installation.apply("")
            ),
        ));
    }
    findings
}

fn deployment(title: &str, present: &Value, problem: Option<&str>) -> Vec<Finding> {
    let id = ObjectId::of(present);
    // A Deployment without replicas counts as available.
    if present["spec"]["replicas"] == 0 {
        return vec![Finding::new(
            Severity::Error,
            title,
            "it is scaled to 0 replicas, so no pod does its work",
            format!(
                "kubectl -n {} scale deployment/{} --replicas=1",
                id.namespace, id.name
            ),
        )];
    }
    if untyped::is_true(present, WorkloadCondition::Available) && problem.is_none() {
        return Vec::new();
    }
    let cause = problem.map_or_else(
        || "no replica is available".to_owned(),
        |problem| format!("not available: {problem}"),
    );
    vec![Finding::new(
        Severity::Error,
        title,
        cause,
        format!(
            "kubectl -n {} logs deployment/{}, and describe its pods",
            id.namespace, id.name
        ),
    )]
}

fn differing(pair: &Pair, present: &Value, fields: &[&str], installation: &Installation) -> Vec<Finding> {
    let expected = &pair.expected;
    let differs = |field: &&&str| !expected[**field].is_null() && expected[**field] != present[**field];
    let finding = |field: &&str| {
        Finding::new(
            Severity::Warning,
            title(expected),
            format!(
                "{field} are not those of the manifests, so the controllers may lack rights, or have too many"
            ),
            installation.apply(" --force-conflicts restores them"),
        )
    };
    fields.iter().filter(differs).map(finding).collect()
}

/// Returns true if `present` contains all of `expected`; the API server adds defaults.
fn covers(present: &Value, expected: &Value) -> bool {
    match (present, expected) {
        (_, Value::Null) => true,
        (Value::Object(present), Value::Object(expected)) => expected
            .iter()
            .all(|(key, value)| covers(present.get(key).unwrap_or(&Value::Null), value)),
        (Value::Array(present), Value::Array(expected)) => {
            present.len() == expected.len()
                && present
                    .iter()
                    .zip(expected)
                    .all(|(present, expected)| covers(present, expected))
        }
        (Value::Number(present), Value::Number(expected)) => present.as_f64() == expected.as_f64(),
        (present, expected) => present == expected,
    }
}

#[cfg(test)]
mod tests {
    use olm_manifests::{Overlay, render};
    use serde_json::json;

    use super::*;

    fn pair(kind: &str, expected: Value, present: Option<Value>) -> Pair {
        let with = |mut object: Value| {
            // Only a CRD is told by its group.
            object["apiVersion"] = "apiextensions.k8s.io/v1".into();
            object["kind"] = kind.into();
            object["metadata"] = json!({"name": "o"});
            object
        };
        Pair {
            expected: with(expected),
            present: present.map(with),
            problem: None,
        }
    }

    fn causes(pairs: &[Pair]) -> Vec<String> {
        let findings = check(pairs, &Installation::default());
        findings.into_iter().map(|finding| finding.cause).collect()
    }

    /// Returns the findings about a cluster with these objects.
    fn about(overlays: &[Overlay], present: &[Value]) -> Vec<Finding> {
        let find = |expected: &Value| {
            let id = ObjectId::of(expected);
            let found = present.iter().find(|object| ObjectId::of(object) == id);
            found.cloned()
        };
        let pair = |expected: Value| Pair {
            present: find(&expected),
            expected,
            problem: None,
        };
        let installation = Installation::of(present, false);
        assert_eq!(installation.overlays, overlays);
        let expected = render(&installation.overlays).unwrap();
        // Only an API server sets conditions.
        let expected = expected
            .into_iter()
            .filter(|object| !is_crd(object) && object["kind"] != "Deployment");
        check(&expected.map(pair).collect::<Vec<_>>(), &installation)
    }

    #[test]
    fn overlays_are_no_finding() {
        for overlay in Overlay::ALL {
            assert_eq!(about(&[overlay], &render(&[overlay]).unwrap()), [], "{overlay:?}");
        }
    }

    #[test]
    fn next_steps_name_the_overlays() {
        let overlay = Overlay::LeastPrivilege;
        let mut objects = render(&[overlay]).unwrap();
        objects.retain(|object| object["kind"] != "Service");
        for role in objects.iter_mut().filter(|object| object["kind"] == "Role") {
            role["rules"] = json!([]);
        }
        let findings = about(&[overlay], &objects);
        assert!(findings.len() > 2, "{findings:?}");
        for finding in findings {
            let named = finding
                .next
                .starts_with("kubectl olm install-controllers --overlay least-privilege ");
            assert!(named, "{finding:?}");
        }
    }

    #[test]
    fn the_account_of_prometheus_may_be_another() {
        let mut objects = render(&[Overlay::Prometheus]).unwrap();
        for object in &mut objects {
            if object["subjects"][0]["namespace"] == "monitoring" {
                object["subjects"][0]["name"] = "prometheus".into();
            }
        }
        assert_eq!(about(&[Overlay::Prometheus], &objects), []);
    }

    #[test]
    fn nothing_is_installed() {
        assert_eq!(
            causes(&[pair("Service", json!({}), None)]),
            ["they are not installed"]
        );
        let one = [
            pair("Service", json!({}), None),
            pair("Secret", json!({}), Some(json!({}))),
        ];
        assert_eq!(causes(&one), ["it does not exist"]);
    }

    #[test]
    fn crds() {
        let spec = |maximum: Value| json!({"versions": [{"name": "v1", "served": true, "schema": {"maximum": maximum}}]});
        let live = |stored: &str, established: &str| {
            let mut spec = spec(json!(3.0));
            spec["versions"][0]["storage"] = true.into();
            json!({"spec": spec, "status": {"storedVersions": [stored],
                "conditions": [{"type": "Established", "status": established}]}})
        };
        let crd = |expected: Value, live| {
            causes(&[pair(
                "CustomResourceDefinition",
                json!({"spec": spec(expected)}),
                Some(live),
            )])
        };
        assert_eq!(crd(json!(3), live("v1", "True")), [""; 0]);
        assert_eq!(crd(json!(3), live("v1", "False")).len(), 1);
        assert_eq!(
            crd(json!(4), live("v1alpha1", "True")),
            [
                "version \"v1alpha1\" of stored objects is not served",
                "its schema is not that of this kubectl olm"
            ]
        );
    }

    #[test]
    fn rights_that_were_changed() {
        let role = |rules: Value| Some(json!({"rules": rules}));
        let expected = || json!({"rules": [{"verbs": ["get"]}]});
        assert_eq!(
            causes(&[pair("Role", expected(), role(json!([{"verbs": ["get"]}])))]),
            [""; 0]
        );
        assert_eq!(causes(&[pair("Role", expected(), role(json!([])))]).len(), 1);
        // An aggregated role has no rules of its own.
        assert_eq!(
            causes(&[pair("ClusterRole", json!({}), role(json!([1])))]),
            [""; 0]
        );
    }

    #[test]
    fn deployments_name_their_problem() {
        let live =
            |status: &str| Some(json!({"status": {"conditions": [{"type": "Available", "status": status}]}}));
        assert_eq!(causes(&[pair("Deployment", json!({}), live("True"))]), [""; 0]);
        let stuck = Pair {
            problem: Some("ErrImagePull".to_owned()),
            ..pair("Deployment", json!({}), live("False"))
        };
        assert_eq!(causes(&[stuck]), ["not available: ErrImagePull"]);
        let mut none = live("True").unwrap();
        none["spec"]["replicas"] = 0.into();
        assert_eq!(
            causes(&[pair("Deployment", json!({}), Some(none))]),
            ["it is scaled to 0 replicas, so no pod does its work"]
        );
    }
}
