//! Schema of a version: pruning, defaults and validation.

use olm_bundle::crd_schema::{Fault, Schema};
use serde_json::Value;

use super::rules::{self, MoreRules};
use crate::status::Cause;
use crate::types::Type;

/// Reasons of defects after which the API server evaluates no rule.
const BLOCKING: [&str; 4] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTypeInvalid",
];

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

    /// Fills in defaults only: an applied object keeps its nulls and unknown fields until it is read.
    pub(crate) fn fill_defaults(&self, object: &mut Value) {
        self.schema.fill_defaults(object);
    }

    /// Adds the defects of an object. A defect of a value that an update does not change is none.
    ///
    /// `found` has the defects of the kind and the metadata. The API server reads no value of an object of a wrong
    /// kind, and it evaluates no rule if a value is missing, too long, of a wrong type or not one of the choices.
    pub(crate) fn check(&self, object: &Value, old: Option<&Value>, found: &mut Vec<Cause>) {
        let of_wrong_kind = found.iter().any(|cause| cause.field == "kind");
        let verdict = if of_wrong_kind {
            self.schema.check_lists(object)
        } else {
            self.schema.check_values(object)
        };
        // Items that occur twice are a defect of their list.
        let were_unique = || old.is_none_or(|old| self.schema.check_lists(old).faults.is_empty());
        let counts = |fault: &&Fault| {
            if fault.cause.starts_with("duplicate value") {
                return were_unique();
            }
            !old.is_some_and(|old| unchanged(&fault.path, object, old))
        };
        let values: Vec<&Fault> = verdict.faults.iter().filter(counts).collect();
        let blocked = found.iter().any(|cause| BLOCKING.contains(&cause.reason))
            || values.iter().any(|fault| is_blocking(&fault.cause));
        found.extend(values.into_iter().map(cause));
        if !blocked {
            let broken = self.schema.check_rules(object);
            found.extend(broken.faults.iter().filter(counts).map(cause));
            rules::check(&self.rules, object, old, found);
        } else if self.has_rules {
            let why = "some validation rules were not checked because the object was invalid";
            found.push(Cause::invalid("<nil>", &Value::Null, why));
        }
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
