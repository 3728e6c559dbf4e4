//! Readiness of applied objects. Pure.
//!
//! Every object, selected by a probe or not, must have a status of its current generation.

mod expression;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use olm_api::condition::{Status, external::Workload as Type};
use olm_api::{
    Assertion, ConditionEqual, ConditionStatus, FieldValue, FieldsEqual, ObjectSelector, ProgressionProbe,
};
use olm_text::object::ObjectId;
use serde_json::Value;

use self::expression::ExpressionCheck;
use crate::workload::Workload;

/// The answer of the probes on one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeResult {
    /// True if every probe passed.
    pub ready: bool,
    /// Failures; empty if ready.
    pub messages: Vec<String>,
    /// True if the age of the status is the only failure: every probe passes for the generation that the status describes.
    pub outdated: bool,
    /// The object as a workload whose pods may tell the reason; `None` if ready or of another kind.
    pub workload: Option<Workload>,
}

/// Probes of a revision.
#[derive(Clone, Debug, Default)]
pub struct Prober {
    probes: Vec<Probe>,
}

#[derive(Clone, Debug)]
struct Probe {
    selector: ObjectSelector,
    checks: Vec<Check>,
}

/// Assertion, ready to be checked.
#[derive(Clone, Debug)]
enum Check {
    Condition(ConditionEqual),
    Fields(FieldsEqual),
    Value(FieldValue),
    Expression(ExpressionCheck),
}

/// Expression of an assertion that cannot be evaluated on any object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "spec.progressionProbes[{probe}].assertions[{assertion}].celExpression.expression is refused: {why}; correct the \
     expression {expression:?}"
)]
pub struct WrongExpression {
    probe: usize,
    assertion: usize,
    expression: String,
    why: String,
}

impl Prober {
    /// Prepares `spec.progressionProbes`. Expressions are compiled once, here.
    ///
    /// # Errors
    /// An expression cannot be parsed, uses an unknown variable or function, has no boolean value, or is too costly.
    pub fn new(probes: &[ProgressionProbe]) -> Result<Self, WrongExpression> {
        let probes = probes.iter().enumerate().map(|(place, probe)| {
            let checks = probe.assertions.iter().enumerate().filter_map(|(at, assertion)| {
                Check::new(assertion)
                    .map_err(|(expression, why)| WrongExpression {
                        probe: place,
                        assertion: at,
                        expression,
                        why,
                    })
                    .transpose()
            });
            Ok(Probe {
                selector: probe.selector.clone(),
                checks: checks.collect::<Result<_, _>>()?,
            })
        });
        let probes = probes.collect::<Result<_, _>>()?;
        Ok(Self { probes })
    }

    /// Returns true if any probe selects the object, so that changes of its status matter.
    #[must_use]
    pub fn selects(&self, object: &Value) -> bool {
        self.probes
            .iter()
            .any(|probe| is_selected(&probe.selector, object))
    }

    /// Runs every probe that selects the object.
    #[must_use]
    pub fn check(&self, object: &Value) -> ProbeResult {
        let result = self.run(object);
        let outdated = !result.ready && as_observed(object).is_some_and(|former| self.run(&former).ready);
        ProbeResult { outdated, ..result }
    }

    fn run(&self, object: &Value) -> ProbeResult {
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
                outdated: false,
                workload: None,
            };
        }
        let mut messages = Vec::new();
        for probe in self
            .probes
            .iter()
            .filter(|probe| is_selected(&probe.selector, object))
        {
            messages.extend(probe.checks.iter().filter_map(|check| check.failure(object)));
        }
        let ready = messages.is_empty();
        ProbeResult {
            ready,
            messages,
            outdated: false,
            workload: if ready { None } else { Workload::of(object) },
        }
    }
}

/// Returns the object with the generation that its status describes; `None` if the status describes the present one.
fn as_observed(object: &Value) -> Option<Value> {
    let number = |value: &Value, path: &str| value.pointer(path).and_then(Value::as_i64);
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let of_conditions = conditions
        .into_iter()
        .flatten()
        .filter_map(|condition| number(condition, "/observedGeneration"));
    let observed = number(object, "/status/observedGeneration").or_else(|| of_conditions.max())?;
    if observed >= number(object, "/metadata/generation")? {
        return None;
    }
    let mut former = object.clone();
    former["metadata"]["generation"] = observed.into();
    Some(former)
}

fn is_selected(selector: &ObjectSelector, object: &Value) -> bool {
    if let Some(wanted) = &selector.group_kind {
        let id = ObjectId::of(object);
        return wanted.group == id.group && wanted.kind == id.kind;
    }
    selector
        .label
        .as_ref()
        .is_some_and(|label| is_labelled(label, object))
}

fn is_labelled(selector: &LabelSelector, object: &Value) -> bool {
    let get = |key: &str| {
        object
            .get("metadata")
            .and_then(|m| m.get("labels"))
            .and_then(|l| l.get(key))
            .and_then(Value::as_str)
    };
    let labels = selector
        .match_labels
        .iter()
        .flatten()
        .all(|(k, v)| get(k) == Some(v.as_str()));
    labels
        && selector.match_expressions.iter().flatten().all(|r| {
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

impl Check {
    /// Prepares an assertion; `None` for one without a member, which holds for every object.
    ///
    /// The error is an expression, and the reason why it is refused.
    fn new(assertion: &Assertion) -> Result<Option<Self>, (String, String)> {
        if let Some(wanted) = &assertion.condition_equal {
            return Ok(Some(Self::Condition(wanted.clone())));
        }
        if let Some(wanted) = &assertion.fields_equal {
            return Ok(Some(Self::Fields(wanted.clone())));
        }
        if let Some(wanted) = &assertion.field_value {
            return Ok(Some(Self::Value(wanted.clone())));
        }
        assertion
            .cel_expression
            .as_ref()
            .map(|wanted| ExpressionCheck::new(wanted).map(Self::Expression))
            .transpose()
    }

    fn failure(&self, object: &Value) -> Option<String> {
        match self {
            Self::Condition(wanted) => condition_failure(wanted, object),
            Self::Fields(wanted) => fields_failure(wanted, object),
            Self::Value(wanted) => value_failure(wanted, object),
            Self::Expression(wanted) => wanted.failure(object),
        }
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
    let expected = match wanted.status {
        ConditionStatus::True => Status::True,
        ConditionStatus::False => Status::False,
    };
    (status != expected.as_str()).then(|| format!(".status.condition[\"{type_}\"] is {status}"))
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
        || wanted.status != ConditionStatus::True
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

    fn prober(probes: Value) -> Result<Prober, WrongExpression> {
        let probes: Vec<ProgressionProbe> = serde_json::from_value(probes).unwrap();
        Prober::new(&probes)
    }

    fn on_maps(expressions: &[Value]) -> Result<Prober, WrongExpression> {
        let assertion = |value| json!({"type": "CELExpression", "celExpression": value});
        let assertions: Vec<Value> = expressions.iter().map(assertion).collect();
        prober(
            json!([{"selector": {"type": "GroupKind", "groupKind": {"group": "", "kind": "ConfigMap"}},
            "assertions": assertions}]),
        )
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
    fn an_outdated_status_may_be_the_only_failure() {
        let prober = Prober::new(&default_probes()).unwrap();
        let spec = json!({"replicas": 3});
        let status = |observed: i64, available: &str| {
            json!({"observedGeneration": observed, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
                "conditions": [{"type": "Available", "status": available}]})
        };
        for (observed, available, ready, outdated) in [
            (1, "True", false, true),
            (1, "False", false, false),
            (2, "True", true, false),
            (2, "False", false, false),
            // A status of a later generation is none of this object's past.
            (3, "True", false, false),
        ] {
            let result = prober.check(&apps("Deployment", &spec, &status(observed, available)));
            let found = (result.ready, result.outdated);
            assert_eq!(found, (ready, outdated), "{observed} {available}");
        }
        let unprobed = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"generation": 2},
            "status": {"observedGeneration": 1}});
        assert!(prober.check(&unprobed).outdated);
        let no_status = apps("Deployment", &spec, &json!({}));
        assert!(!prober.check(&no_status).outdated);
    }

    #[test]
    fn outdated_conditions_count_like_an_outdated_status() {
        let selector = json!({"type": "GroupKind", "groupKind": {"group": "example.com", "kind": "Thing"}});
        let prober = by(
            &selector,
            &json!({"type": "ConditionEqual", "conditionEqual": {"type": "Ready", "status": "True"}}),
        );
        let outdated = |conditions: Value| {
            let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"generation": 3},
                "status": {"conditions": conditions}});
            prober.check(&thing).outdated
        };
        let condition = |type_: &str, status: &str, observed: i64| json!({"type": type_, "status": status, "observedGeneration": observed});
        assert!(outdated(json!([condition("Ready", "True", 2)])));
        assert!(!outdated(json!([condition("Ready", "False", 2)])));
        assert!(!outdated(json!([condition("Ready", "True", 3)])), "ready");
        let older = json!([condition("Ready", "True", 1), condition("Other", "True", 2)]);
        assert!(
            !outdated(older),
            "the condition was outdated before the last change"
        );
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
        let prober = prober(
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

    #[test]
    fn expressions_hold_or_say_why_not() {
        let open = json!({"expression": "self.data.gate == 'open'", "message": "the gate is not open"});
        let plain = json!({"expression": "self.data.count == '3'"});
        let prober = on_maps(&[open, plain]).unwrap();
        let check = |data: Value| {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": data});
            prober.check(&map).messages
        };
        assert!(check(json!({"gate": "open", "count": "3"})).is_empty());
        assert_eq!(
            check(json!({"gate": "shut", "count": "2"})),
            [
                "the gate is not open",
                "expression \"self.data.count == '3'\" is not true"
            ]
        );
        assert_eq!(
            check(json!({"gate": "open"})),
            ["expression \"self.data.count == '3'\" has no value: No such key: count"]
        );
        assert_eq!(
            check(json!({"count": "3"})),
            ["the gate is not open (the expression has no value: No such key: gate)"]
        );
        assert!(prober.check(&json!({"apiVersion": "v1", "kind": "Secret"})).ready);
    }

    #[test]
    fn wrong_expressions_are_named() {
        let right = json!({"expression": "true"});
        let refused = on_maps(&[right, json!({"expression": "object.ready"})]).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "spec.progressionProbes[0].assertions[1].celExpression.expression is refused: variable \"object\" is unknown; the \
             object is called self; correct the expression \"object.ready\""
        );
    }

    fn by(selector: &Value, assertion: &Value) -> Prober {
        prober(json!([{"selector": selector, "assertions": [assertion]}])).unwrap()
    }

    #[test]
    fn group_and_kind_select() {
        let selector = json!({"type": "GroupKind", "groupKind": {"group": "apps", "kind": "Deployment"}});
        let prober = by(
            &selector,
            &json!({"type": "CELExpression", "celExpression": {"expression": "false"}}),
        );
        for (version, kind, selected) in [
            ("apps/v1", "Deployment", true),
            ("apps/v1", "DaemonSet", false),
            ("v1", "Deployment", false),
        ] {
            let object = json!({"apiVersion": version, "kind": kind});
            assert_eq!(prober.selects(&object), selected, "{object}");
            assert_eq!(prober.check(&object).ready, !selected, "{object}");
        }
    }

    #[test]
    fn every_requirement_of_a_label_selector_counts() {
        let required = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "a", "operator": operator, "values": values}]});
        let both = json!({"matchLabels": {"b": "z"},
            "matchExpressions": [{"key": "a", "operator": "Exists"}]});
        for (label, labels, selected) in [
            (required("In", json!(["x", "y"])), json!({"a": "y"}), true),
            (required("In", json!(["x"])), json!({"a": "y"}), false),
            (required("In", json!(["x"])), json!({}), false),
            (required("NotIn", json!(["x"])), json!({}), true),
            (required("NotIn", json!(["x"])), json!({"a": "x"}), false),
            (required("Exists", json!([])), json!({"a": ""}), true),
            (required("Exists", json!([])), json!({"b": ""}), false),
            (required("DoesNotExist", json!([])), json!({"a": ""}), false),
            (required("DoesNotExist", json!([])), json!({"b": ""}), true),
            (required("Like", json!(["x"])), json!({"a": "x"}), false),
            (json!({"matchLabels": {"a": "x"}}), json!({"a": "x"}), true),
            (json!({"matchLabels": {"a": "x"}}), json!({"a": "y"}), false),
            (both.clone(), json!({"a": "x", "b": "z"}), true),
            (both.clone(), json!({"b": "z"}), false),
            (both, json!({"a": "x"}), false),
        ] {
            let selector = json!({"type": "Label", "label": label});
            let assertion = json!({"type": "FieldValue", "fieldValue": {"fieldPath": "x", "value": "y"}});
            let object = json!({"metadata": {"labels": labels}});
            assert_eq!(
                by(&selector, &assertion).selects(&object),
                selected,
                "{label} {object}"
            );
        }
    }

    #[test]
    fn a_condition_may_have_to_be_false() {
        let selector = json!({"type": "GroupKind", "groupKind": {"group": "", "kind": "Node"}});
        let prober = by(
            &selector,
            &json!({"type": "ConditionEqual", "conditionEqual": {"type": "Pressure", "status": "False"}}),
        );
        let check = |condition: Value| {
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"generation": 3},
                "status": {"conditions": [{"type": "Other", "status": "True"}, condition]}});
            prober.check(&node).messages.join(" and ")
        };
        assert_eq!(check(json!({"type": "Pressure", "status": "False"})), "");
        assert_eq!(
            check(json!({"type": "Pressure", "status": "False", "observedGeneration": 3})),
            ""
        );
        assert_eq!(
            check(json!({"type": "Pressure", "status": "True"})),
            ".status.condition[\"Pressure\"] is True"
        );
    }

    #[test]
    fn only_a_stateful_set_without_conditions_is_ready_by_its_replicas() {
        let selector = |kind| json!({"type": "GroupKind", "groupKind": {"group": "apps", "kind": kind}});
        let wanted = |kind, type_: &str, status: &str| {
            by(
                &selector(kind),
                &json!({"type": "ConditionEqual", "conditionEqual": {"type": type_, "status": status}}),
            )
        };
        let available = json!({"observedGeneration": 2, "availableReplicas": 1});
        let check = |kind, type_, status, object: Value| {
            wanted(kind, type_, status)
                .check(&apps(kind, &json!({}), &object))
                .messages
                .join(" and ")
        };
        let missing = "missing .status.conditions";
        assert_eq!(check("StatefulSet", "Available", "True", available.clone()), "");
        assert_eq!(
            check(
                "StatefulSet",
                "Available",
                "True",
                json!({"observedGeneration": 2})
            ),
            "0 of 1 replicas are available"
        );
        assert_eq!(
            check(
                "StatefulSet",
                "Available",
                "True",
                json!({"availableReplicas": 1})
            ),
            "missing .status.observedGeneration"
        );
        assert_eq!(
            check("StatefulSet", "Available", "False", available.clone()),
            missing
        );
        assert_eq!(check("StatefulSet", "Ready", "True", available.clone()), missing);
        assert_eq!(check("DaemonSet", "Available", "True", available), missing);
        let reported = json!({"observedGeneration": 2, "availableReplicas": 1, "conditions": []});
        assert_eq!(
            check("StatefulSet", "Available", "True", reported),
            "missing .status.condition[\"Available\"]"
        );
    }

    #[test]
    fn replica_counts_that_kubernetes_omits_are_zero() {
        let equal = |kind: &Value, a: &str, b: &str, object: &Value| {
            let selector = json!({"type": "GroupKind", "groupKind": kind});
            let assertion = json!({"type": "FieldsEqual", "fieldsEqual": {"fieldA": a, "fieldB": b}});
            by(&selector, &assertion).check(object).messages.join(" and ")
        };
        let deployment = json!({"group": "apps", "kind": "Deployment"});
        let scaled = apps(
            "Deployment",
            &json!({"replicas": 0}),
            &json!({"observedGeneration": 2}),
        );
        for count in [
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
        ] {
            let path = format!("status.{count}");
            assert_eq!(equal(&deployment, "spec.replicas", &path, &scaled), "");
        }
        assert_eq!(
            equal(&deployment, "spec.replicas", "status.other", &scaled),
            "\"status.other\" missing"
        );
        let unseen = apps("Deployment", &json!({"replicas": 0}), &json!({}));
        assert_eq!(
            equal(&deployment, "spec.replicas", "status.replicas", &unseen),
            "\"status.replicas\" missing"
        );
        let foreign = json!({"apiVersion": "g.io/v1", "kind": "Deployment", "spec": {"replicas": 0},
            "metadata": {"generation": 2}, "status": {"observedGeneration": 2}});
        assert_eq!(
            equal(
                &json!({"group": "g.io", "kind": "Deployment"}),
                "status.replicas",
                "spec.replicas",
                &foreign
            ),
            "\"status.replicas\" missing"
        );
    }

    #[test]
    fn a_failed_workload_is_handed_on_for_its_pods() {
        let prober = Prober::new(&default_probes()).unwrap();
        let spec = json!({"replicas": 1, "selector": {"matchLabels": {"a": "b"}}});
        let mut deployment = apps("Deployment", &spec, &json!({}));
        deployment["metadata"]["name"] = json!("d");
        deployment["metadata"]["namespace"] = json!("n");
        deployment["metadata"]["uid"] = json!("u");
        assert!(prober.check(&deployment).workload.is_some());
    }

    #[test]
    fn an_empty_message_says_the_expression() {
        let empty = json!({"expression": "self.x == 1", "message": ""});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "x": 2});
        assert_eq!(
            on_maps(&[empty]).unwrap().check(&map).messages,
            ["expression \"self.x == 1\" is not true"]
        );
    }
}
