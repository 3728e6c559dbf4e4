//! Readiness of applied objects. Pure.
//!
//! Every object, selected by a probe or not, must have a status of its current generation.

mod expression;
#[cfg(test)]
mod tests;

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
