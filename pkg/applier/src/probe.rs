//! Readiness of applied objects. Pure.
//!
//! Every object, selected by a probe or not, must have a status of its current generation.

use std::collections::BTreeMap;

use olm_api::condition::{Status, external::Workload as Type};
use olm_text::object::ObjectId;
use serde::Deserialize;
use serde_json::Value;

use crate::workload::Workload;

/// The answer of the probes on one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// True if every probe passed.
    pub ready: bool,
    /// Failures; empty if ready.
    pub messages: Vec<String>,
    /// The object as a workload whose pods may tell the reason; `None` if ready or of another kind.
    pub workload: Option<Workload>,
}

/// Probes of a revision.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Prober {
    probes: Vec<Probe>,
}

#[derive(Clone, Debug, Deserialize)]
struct Probe {
    selector: Selector,
    #[serde(default)]
    assertions: Vec<Assertion>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    group_kind: Option<GroupKind>,
    label: Option<LabelSelector>,
}

#[derive(Clone, Debug, Deserialize)]
struct GroupKind {
    group: String,
    kind: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LabelSelector {
    match_labels: Option<BTreeMap<String, String>>,
    match_expressions: Option<Vec<Requirement>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Requirement {
    key: String,
    operator: String,
    values: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Assertion {
    condition_equal: Option<ConditionEqual>,
    fields_equal: Option<FieldsEqual>,
    field_value: Option<FieldValue>,
}

#[derive(Clone, Debug, Deserialize)]
struct ConditionEqual {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FieldsEqual {
    field_a: String,
    field_b: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FieldValue {
    field_path: String,
    value: String,
}

impl Prober {
    /// Parses `spec.progressionProbes`.
    pub fn new(probes: &[olm_api::ProgressionProbe]) -> Result<Self, serde_json::Error> {
        Self::deserialize(serde_json::to_value(probes)?)
    }

    /// Returns true if any probe selects the object, so that changes of its status matter.
    #[must_use]
    pub fn selects(&self, object: &Value) -> bool {
        self.probes.iter().any(|probe| probe.selector.matches(object))
    }

    /// Runs every probe that selects the object.
    #[must_use]
    pub fn check(&self, object: &Value) -> ProbeResult {
        if let (Some(observed), Some(generation)) = (
            object
                .pointer("/status/observedGeneration")
                .and_then(Value::as_i64),
            object.pointer("/metadata/generation").and_then(Value::as_i64),
        ) && observed != generation
        {
            return ProbeResult {
                ready: false,
                messages: vec![".status outdated".to_owned()],
                workload: None,
            };
        }
        let mut messages = Vec::new();
        for probe in self.probes.iter().filter(|probe| probe.selector.matches(object)) {
            messages.extend(probe.assertions.iter().filter_map(|a| a.failure(object)));
        }
        let ready = messages.is_empty();
        ProbeResult {
            ready,
            messages,
            workload: if ready { None } else { Workload::of(object) },
        }
    }
}

impl Selector {
    fn matches(&self, object: &Value) -> bool {
        if let Some(wanted) = &self.group_kind {
            let id = ObjectId::of(object);
            return wanted.group == id.group && wanted.kind == id.kind;
        }
        self.label.as_ref().is_some_and(|label| label.matches(object))
    }
}

impl LabelSelector {
    fn matches(&self, object: &Value) -> bool {
        let get = |key: &str| {
            object
                .get("metadata")
                .and_then(|m| m.get("labels"))
                .and_then(|l| l.get(key))
                .and_then(Value::as_str)
        };
        let labels = self
            .match_labels
            .iter()
            .flatten()
            .all(|(k, v)| get(k) == Some(v.as_str()));
        labels
            && self.match_expressions.iter().flatten().all(|r| {
                let value = get(&r.key);
                let listed = value.is_some_and(|v| r.values.iter().flatten().any(|wanted| wanted == v));
                match r.operator.as_str() {
                    "In" => listed,
                    "NotIn" => !listed,
                    "Exists" => value.is_some(),
                    "DoesNotExist" => value.is_none(),
                    _ => false,
                }
            })
    }
}

impl Assertion {
    fn failure(&self, object: &Value) -> Option<String> {
        if let Some(assertion) = &self.condition_equal {
            return condition_failure(assertion, object);
        }
        if let Some(assertion) = &self.fields_equal {
            return fields_failure(assertion, object);
        }
        self.field_value
            .as_ref()
            .and_then(|assertion| value_failure(assertion, object))
    }
}

fn condition_failure(wanted: &ConditionEqual, object: &Value) -> Option<String> {
    if let Some(answer) = stateful_set_available(wanted, object) {
        return answer;
    }
    let Some(conditions) = object.pointer("/status/conditions") else {
        return Some("missing .status.conditions".to_owned());
    };
    let Some(conditions) = conditions.as_array() else {
        return Some("malformed .status.conditions".to_owned());
    };
    let type_ = &wanted.type_;
    let found = conditions
        .iter()
        .find(|c| c.get("type").and_then(Value::as_str) == Some(type_));
    let Some(found) = found else {
        return Some(format!("missing .status.condition[\"{type_}\"]"));
    };
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    let observed = found.get("observedGeneration").and_then(Value::as_i64);
    if observed.is_some() && observed != generation {
        return Some(format!(".status.condition[\"{type_}\"] outdated"));
    }
    let status = found.get("status").and_then(Value::as_str).unwrap_or_default();
    (status != wanted.status).then(|| format!(".status.condition[\"{type_}\"] is {status}"))
}

/// Availability of a `StatefulSet`, on which Kubernetes sets no condition: enough replicas must be available.
#[expect(
    clippy::option_option,
    reason = "outer: whether it is answered here; inner: what is missing"
)]
fn stateful_set_available(wanted: &ConditionEqual, object: &Value) -> Option<Option<String>> {
    let id = ObjectId::of(object);
    if (id.group, id.kind) != ("apps", "StatefulSet")
        || wanted.type_ != Type::Available
        || wanted.status != Status::True
        || object.pointer("/status/conditions").is_some()
    {
        return None;
    }
    if object.pointer("/status/observedGeneration").is_none() {
        return Some(Some("missing .status.observedGeneration".to_owned()));
    }
    let wanted_replicas = object
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(1);
    let available = object
        .pointer("/status/availableReplicas")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    Some(
        (available < wanted_replicas)
            .then(|| format!("{available} of {wanted_replicas} replicas are available")),
    )
}

fn fields_failure(wanted: &FieldsEqual, object: &Value) -> Option<String> {
    let (path_a, path_b) = (&wanted.field_a, &wanted.field_b);
    let Some(a) = field(object, path_a) else {
        return Some(format!("\"{path_a}\" missing"));
    };
    let Some(b) = field(object, path_b) else {
        return Some(format!("\"{path_b}\" missing"));
    };
    (a != b).then(|| format!("\"{path_a}\" != \"{path_b}\" expected: {a} got: {b}"))
}

fn value_failure(wanted: &FieldValue, object: &Value) -> Option<String> {
    let FieldValue { field_path, value } = wanted;
    let Some(got) = field(object, field_path) else {
        return Some(format!("missing key: \"{field_path}\""));
    };
    (got.as_str() != Some(value))
        .then(|| format!("value at key \"{field_path}\" != \"{value}\"; expected: \"{value}\" got: {got}"))
}

/// Returns the value at a dotted path. A replica count that Kubernetes omits because it is zero counts as zero if
/// the object has a status: otherwise a workload scaled to zero would never be ready.
fn field(object: &Value, path: &str) -> Option<Value> {
    let mut value = object;
    for key in path.split('.') {
        let Some(next) = value.get(key) else {
            let count = matches!(
                path,
                "status.replicas"
                    | "status.updatedReplicas"
                    | "status.readyReplicas"
                    | "status.availableReplicas"
            );
            let workload = ObjectId::of(object).group == "apps"
                && object.pointer("/status/observedGeneration").is_some();
            return (count && workload).then(|| Value::from(0));
        };
        value = next;
    }
    Some(value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::default_probes;
    use serde_json::json;

    fn check(object: &Value) -> String {
        let prober = Prober::new(&default_probes()).unwrap();
        let result = prober.check(object);
        assert_eq!(result.ready, result.messages.is_empty());
        result.messages.join(" and ")
    }

    fn apps(kind: &str, spec: &Value, status: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"generation": 2}, "spec": spec, "status": status})
    }

    #[test]
    fn messages_of_a_deployment() {
        let spec = json!({"replicas": 1});
        assert_eq!(
            check(&apps("Deployment", &spec, &json!({}))),
            "\"status.updatedReplicas\" missing and missing .status.conditions"
        );
        let old = json!({"observedGeneration": 1});
        assert_eq!(check(&apps("Deployment", &spec, &old)), ".status outdated");
        let status = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1,
            "conditions": [{"type": "Available", "status": "False"}]});
        assert_eq!(
            check(&apps("Deployment", &spec, &status)),
            "\"status.updatedReplicas\" != \"status.replicas\" expected: 1 got: 2 and .status.condition[\"Available\"] is False"
        );
        let status =
            json!({"observedGeneration": 2, "conditions": [{"type": "Available", "status": "True"}]});
        assert_eq!(check(&apps("Deployment", &json!({"replicas": 0}), &status)), "");
    }

    #[test]
    fn a_stateful_set_is_ready_by_its_replicas() {
        let spec = json!({"replicas": 2});
        let status =
            json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1});
        assert_eq!(
            check(&apps("StatefulSet", &spec, &status)),
            "1 of 2 replicas are available"
        );
        let status =
            json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
        assert_eq!(check(&apps("StatefulSet", &spec, &status)), "");
    }

    #[test]
    fn messages_of_fields_and_conditions() {
        let claim =
            |status: Value| json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": status});
        assert_eq!(check(&claim(json!({}))), "missing key: \"status.phase\"");
        assert_eq!(
            check(&claim(json!({"phase": "Pending"}))),
            "value at key \"status.phase\" != \"Bound\"; expected: \"Bound\" got: \"Pending\""
        );
        let crd = |c: Value| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"generation": 3}, "status": {"conditions": c}})
        };
        assert_eq!(
            check(&crd(json!([]))),
            "missing .status.condition[\"Established\"]"
        );
        assert_eq!(check(&crd(json!("x"))), "malformed .status.conditions");
        assert_eq!(
            check(&crd(
                json!([{"type": "Established", "status": "True", "observedGeneration": 2}])
            )),
            ".status.condition[\"Established\"] outdated"
        );
    }

    #[test]
    fn labels_select() {
        let prober = Prober::deserialize(
            json!([{"selector": {"type": "Label", "label": {"matchExpressions": [
            {"key": "a", "operator": "NotIn", "values": ["x"]}]}},
            "assertions": [{"type": "FieldValue", "fieldValue": {"fieldPath": "data.k", "value": "v"}}]}]),
        )
        .unwrap();
        assert!(!prober.check(&json!({"metadata": {"labels": {"a": "y"}}})).ready);
        assert!(prober.check(&json!({"metadata": {"labels": {"a": "x"}}})).ready);
        assert!(
            prober
                .check(&json!({"metadata": {"labels": {"a": "y"}}, "data": {"k": "v"}}))
                .ready
        );
    }
}
