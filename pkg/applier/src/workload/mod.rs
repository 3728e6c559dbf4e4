//! Workloads that are not available, and the reason that their pods give. Pure.
//!
//! [`Workload::of`] reads a Deployment, `StatefulSet`, `DaemonSet`, `ReplicaSet` or Job. [`Diagnosis::of`] turns the
//! workload and its pods into one sentence, the worst problem first. Texts of the kubelet, the scheduler and the
//! container are foreign: they are quoted and bounded.

mod container;
mod diagnosis;
mod problem;

pub use diagnosis::Diagnosis;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::Selector;
use olm_api::condition::{external::Workload as Type, untyped};
use olm_text::object::ObjectId;
use serde::Deserialize as _;
use serde_json::Value;

/// Label of the pods of a Deployment that names their template.
pub(crate) const TEMPLATE_LABEL: &str = "pod-template-hash";

/// A workload that its probes find unavailable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Selector of the pods, in the form of a list request.
    pub selector: String,
    /// True if no pod of the present template exists yet: the pods that the selector finds belong to another one.
    pub outdated: bool,
    /// Failure that the workload itself reports: reason and message.
    pub failure: Option<(String, String)>,
}

impl Workload {
    /// Reads a workload from the API server's object. `None` for other kinds, and if the status describes another
    /// generation of the spec.
    #[must_use]
    pub fn of(object: &Value) -> Option<Self> {
        let id = ObjectId::of(object);
        if !matches!(
            (id.group, id.kind),
            ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job")
        ) {
            return None;
        }
        let number = |path: &str| object.pointer(path).and_then(Value::as_i64);
        let observed = number("/status/observedGeneration");
        if observed.is_some_and(|observed| Some(observed) != number("/metadata/generation")) {
            return None;
        }
        Some(Self {
            kind: id.kind.to_owned(),
            namespace: id.namespace.to_owned(),
            name: id.name.to_owned(),
            selector: selector(object.pointer("/spec/selector")?)?,
            // Pods of a former template say nothing about a rollout of the present one. The pods of the other kinds
            // do: a StatefulSet and a DaemonSet wait for them.
            outdated: id.kind == "Deployment" && number("/status/updatedReplicas").unwrap_or(0) == 0,
            failure: failure(object),
        })
    }

    /// Returns true if both have the same pods.
    #[must_use]
    pub fn same_pods(&self, other: &Self) -> bool {
        (&self.kind, &self.namespace, &self.name, &self.selector)
            == (&other.kind, &other.namespace, &other.name, &other.selector)
    }
}

/// Returns the selector of a list request for a Kubernetes label selector. `None` without requirements: such a
/// selector would find all pods of the namespace.
fn selector(selector: &Value) -> Option<String> {
    let selector = LabelSelector::deserialize(selector).ok()?;
    let selector = Selector::try_from(selector).ok()?;
    (!selector.selects_all()).then(|| selector.to_string())
}

/// Returns reason and message of the condition that reports a failure: `ReplicaFailure` if pods cannot be created (a
/// quota or an admission webhook refuses them), `Failed` of a Job.
fn failure(object: &Value) -> Option<(String, String)> {
    let failures = [Type::ReplicaFailure.as_str(), Type::Failed.as_str()];
    let found =
        untyped::all(object).find(|condition| failures.contains(&condition.type_) && condition.is_true())?;
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    Some((text(found.reason), text(found.message)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(selector: &Value, status: &Value) -> Option<Workload> {
        Workload::of(&json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "d", "namespace": "n", "generation": 2},
            "spec": {"selector": selector}, "status": status}))
    }

    #[test]
    fn selectors_have_the_form_of_a_request() {
        let of = |selector: Value| deployment(&selector, &json!({})).map(|workload| workload.selector);
        let labels = json!({"matchLabels": {"a": "b", "c/d": "e"}, "matchExpressions": [
            {"key": "f", "operator": "In", "values": ["g", "h"]}, {"key": "i", "operator": "NotIn", "values": ["j"]},
            {"key": "k", "operator": "Exists"}, {"key": "l", "operator": "DoesNotExist"}]});
        assert_eq!(of(labels).unwrap(), "a=b,c/d=e,f in (g,h),i notin (j),k,!l");
        assert_eq!(of(json!({})), None);
        assert_eq!(
            of(json!({"matchExpressions": [{"key": "a", "operator": "Gt"}]})),
            None
        );
    }

    #[test]
    fn the_status_must_describe_the_spec() {
        let labels = json!({"matchLabels": {"a": "b"}});
        assert_eq!(deployment(&labels, &json!({"observedGeneration": 1})), None);
        let of = |status: Value| deployment(&labels, &status).unwrap();
        assert!(of(json!({"observedGeneration": 2})).outdated);
        assert!(!of(json!({"observedGeneration": 2, "updatedReplicas": 1})).outdated);
    }

    #[test]
    fn failures_of_the_workload_itself() {
        let labels = json!({"matchLabels": {"a": "b"}});
        let condition = |status: &str| {
            json!({"conditions": [{"type": "Available", "status": "False", "reason": "x", "message": "y"},
                {"type": "ReplicaFailure", "status": status, "reason": "FailedCreate", "message": "exceeded quota"}]})
        };
        let failure = deployment(&labels, &condition("True")).unwrap().failure;
        assert_eq!(
            failure,
            Some(("FailedCreate".to_owned(), "exceeded quota".to_owned()))
        );
        assert_eq!(deployment(&labels, &condition("False")).unwrap().failure, None);
    }

    #[test]
    fn other_kinds_have_no_pods() {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"},
            "spec": {"selector": {"a": "b"}}});
        assert_eq!(Workload::of(&service), None);
    }
}
