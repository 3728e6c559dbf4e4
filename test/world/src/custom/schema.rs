//! Schema of a version: pruning, defaults and validation.

use olm_bundle::crd_schema::{Fault, Schema};
use serde_json::Value;

use super::rules::{self, MoreRules};
use crate::status::Cause;
use crate::types::Type;

/// Compiled schema.
#[derive(Debug)]
pub(crate) struct CustomSchema {
    pub fields: Type,
    schema: Schema,
    /// True if the schema has any CEL rule.
    has_rules: bool,
    rules: MoreRules,
}

impl CustomSchema {
    pub(super) fn new(written: &Value, fields: Type) -> Self {
        Self {
            fields,
            schema: Schema::compile(written),
            has_rules: written.to_string().contains("\"x-kubernetes-validations\""),
            rules: MoreRules::compile(written),
        }
    }

    /// Drops unknown fields and fills in defaults.
    pub(crate) fn prepare(&self, object: &mut Value) {
        self.schema.prepare(object);
    }

    /// Returns the defects of an object. A defect of a value that an update does not change is none.
    pub(crate) fn check(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let verdict = self.schema.check(object.clone());
        let mut out: Vec<Cause> = verdict
            .faults
            .iter()
            .filter(|fault| !old.is_some_and(|old| unchanged(&fault.path, object, old)))
            .map(cause)
            .collect();
        let blocks = verdict.faults.iter().any(|fault| is_blocking(&fault.cause));
        if blocks && !out.is_empty() && self.has_rules {
            let why = "some validation rules were not checked because the object was invalid";
            out.push(Cause::invalid("<nil>", &Value::Null, why));
        } else {
            rules::check(&self.rules, object, old, &mut out);
        }
        out
    }
}

fn cause(fault: &Fault) -> Cause {
    Cause::new("FieldValueInvalid", fault.path.clone(), fault.cause.clone())
}

/// Returns true for a defect after which the API server evaluates no rule.
fn is_blocking(cause: &str) -> bool {
    let counted = cause.starts_with("has ") && cause.contains("more than the maximum");
    let typed = cause.contains(" is not a")
        && !cause.contains(" is not a valid ")
        && !cause.contains(" is not a multiple ");
    cause == "is required"
        || cause == "is not an object"
        || cause.contains(" is not one of ")
        || counted
        || typed
}

/// Returns true if the value at a path is the same in both objects.
fn unchanged(path: &str, new: &Value, old: &Value) -> bool {
    let find = |object| {
        let mut at: &Value = object;
        for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
            let step = step.trim_end_matches(']');
            at = match at {
                Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
                other => other.get(step)?,
            };
        }
        Some(at)
    };
    !path.is_empty() && find(new).is_some_and(|new: &Value| find(old) == Some(new))
}
