//! Checks of a bundle's configuration, with upstream's messages.
//!
//! The messages, and which of them are shown together, are those of upstream's validator, so no library can produce
//! them. [`super::validate`] applies a library to the same schema afterwards.

use serde_json::{Map, Value};

use super::words::{invalid_type, kind};
use super::{WATCH_NAMESPACE_SELECTOR, WATCH_NAMESPACES, deployment, namespace_selector};
use crate::model::InstallMode;
use crate::shape::{Field, Shape, shapes};
use crate::{Bundle, RenderOptions};

pub(super) const PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
pub(super) const MAX_NAMESPACE: usize = 63;
/// Most namespaces that an operator with a list or a selector watches. Each namespace gets its own roles and bindings.
pub const MAX_NAMESPACES: usize = 100;

/// Finding or group of findings.
enum Finding {
    Text(String),
    /// Findings inside another structure: beside other findings only one line stands for the group.
    Nested(Vec<Finding>),
}

/// Checks `input`. The error is one sentence or a list of sentences.
pub(super) fn check(bundle: &Bundle, options: &RenderOptions, input: &Value) -> Result<(), String> {
    let Value::Object(map) = input else {
        return Err(format!("invalid type: got {}, want object", kind(input)));
    };
    let optional = bundle.supports(InstallMode::AllNamespaces);
    let format = Format::of(bundle);
    let multi = |field: &str| {
        map.get(field)
            .filter(|_| bundle.supports(InstallMode::MultiNamespace))
    };
    let (several, selector) = (multi(WATCH_NAMESPACES), multi(WATCH_NAMESPACE_SELECTOR));
    let required = format.is_some() && !optional && several.is_none() && selector.is_none();
    let mut findings = Vec::new();

    if required && map.get("watchNamespace").is_none_or(Value::is_null) {
        findings.push(Finding::Text(
            "required field \"watchNamespace\" is missing".to_owned(),
        ));
    } else if let (Some(format), Some(value)) = (format, map.get("watchNamespace")) {
        watch_namespace(format, optional, &options.install_namespace, value, &mut findings);
    }
    if let Some(several) = several {
        watch_namespaces(several, &mut findings);
        combined(map, WATCH_NAMESPACES, &["watchNamespace"], &mut findings);
    }
    if let Some(selector) = selector {
        let faults = namespace_selector::findings(selector);
        findings.extend(faults.into_iter().map(Finding::Text));
        let others = ["watchNamespace", WATCH_NAMESPACES];
        combined(map, WATCH_NAMESPACE_SELECTOR, &others, &mut findings);
    }
    let known = |key: &str| {
        key == "watchNamespace" && format.is_some()
            || key == "deploymentConfig" && options.deployment_config
            || key == WATCH_NAMESPACES && several.is_some()
            || key == WATCH_NAMESPACE_SELECTOR && selector.is_some()
    };
    if options.deployment_config
        && let Some(value) = map.get("deploymentConfig")
    {
        deployment_config(value, &mut findings);
    }
    // Only one unknown key per level is named; upstream picks at random, we take the first by name.
    if let Some(key) = map.keys().find(|key| !known(key)) {
        findings.push(Finding::Text(format!("unknown field \"{key}\"")));
    }
    report(findings)
}

fn report(mut findings: Vec<Finding>) -> Result<(), String> {
    // A single finding is followed down to its location; beside others only its head is shown.
    while let [Finding::Nested(_)] = findings.as_slice() {
        if let Some(Finding::Nested(inner)) = findings.pop() {
            findings = inner;
        }
    }
    let texts: Vec<String> = findings
        .into_iter()
        .map(|finding| match finding {
            Finding::Text(text) => text,
            Finding::Nested(_) => "validation failed".to_owned(),
        })
        .collect();
    match texts.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("multiple errors found:\n  - {}", many.join("\n  - "))),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Own,
    Single,
    Any,
}

impl Format {
    /// Returns `None` if the namespace cannot be chosen.
    fn of(bundle: &Bundle) -> Option<Self> {
        let own = bundle.supports(InstallMode::OwnNamespace);
        match (own, bundle.supports(InstallMode::SingleNamespace)) {
            (true, true) => Some(Self::Any),
            (true, false) => Some(Self::Own),
            (false, true) => Some(Self::Single),
            (false, false) => None,
        }
    }

    fn violation(self, value: &str, namespace: &str) -> Option<String> {
        let (name, message) = match self {
            Self::Own if value != namespace => (
                "ownNamespaceInstallMode",
                format!(
                    "invalid value \"{value}\": must be \"{namespace}\" (the namespace where the operator is \
                     installed) because this operator only supports OwnNamespace install mode"
                ),
            ),
            Self::Single if value == namespace => (
                "singleNamespaceInstallMode",
                format!(
                    "invalid value \"{value}\": must be different from \"{namespace}\" (the install namespace) \
                     because this operator uses SingleNamespace install mode to watch a different namespace"
                ),
            ),
            _ => return None,
        };
        Some(format!(
            "invalid format for field \"watchNamespace\": '{value}' is not valid {name}: {message}"
        ))
    }
}

fn watch_namespace(format: Format, optional: bool, namespace: &str, value: &Value, out: &mut Vec<Finding>) {
    let mut found = Vec::new();
    match value {
        Value::Null if optional => {}
        Value::String(text) => {
            if let Some(violation) = format.violation(text, namespace) {
                found.push(violation);
            } else {
                found.extend(namespace_name("watchNamespace", text));
            }
        }
        other => found.push(invalid_type("watchNamespace", kind(other), "string")),
    }
    if optional && !found.is_empty() {
        out.push(Finding::Text(
            "invalid value for field \"watchNamespace\"".to_owned(),
        ));
        out.push(Finding::Text(invalid_type("watchNamespace", kind(value), "null")));
        if found.len() > 1 {
            out.push(Finding::Text("validation failed".to_owned()));
        }
    }
    out.extend(found.into_iter().map(Finding::Text));
}

/// Refuses `field` beside each of `others`.
fn combined(map: &Map<String, Value>, field: &str, others: &[&str], out: &mut Vec<Finding>) {
    for other in others.iter().filter(|other| map.contains_key(**other)) {
        out.push(Finding::Text(format!(
            "field \"{field}\" cannot be combined with field \"{other}\""
        )));
    }
}

fn watch_namespaces(value: &Value, out: &mut Vec<Finding>) {
    let mut say = |text: String| out.push(Finding::Text(text));
    let Value::Array(items) = value else {
        return say(invalid_type(WATCH_NAMESPACES, kind(value), "array"));
    };
    if items.is_empty() || items.len() > MAX_NAMESPACES {
        say(format!(
            "field \"{WATCH_NAMESPACES}\" must have 1 to {MAX_NAMESPACES} items (len={})",
            items.len()
        ));
    }
    for (at, item) in items.iter().enumerate().take(MAX_NAMESPACES) {
        let field = format!("{WATCH_NAMESPACES}.{at}");
        match item {
            Value::String(text) => namespace_name(&field, text).into_iter().for_each(&mut say),
            other => say(invalid_type(&field, kind(other), "string")),
        }
        if items.iter().take(at).any(|before| before == item) {
            say(format!("field \"{field}\" repeats an item"));
        }
    }
}

/// Returns the defects of a namespace's name.
fn namespace_name(field: &str, text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let length = text.chars().count();
    if length == 0 {
        out.push(format!("field \"{field}\" must have minimum length of 1 (len=0)"));
    }
    if length > MAX_NAMESPACE {
        out.push(format!(
            "field \"{field}\" must have maximum length of {MAX_NAMESPACE} (len={length})"
        ));
    }
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits =
        text.starts_with(is_word) && text.ends_with(is_word) && text.chars().all(|c| is_word(c) || c == '-');
    if !fits {
        out.push(format!("field \"{field}\" must match pattern \"{PATTERN}\""));
    }
    out
}

fn deployment_config(value: &Value, out: &mut Vec<Finding>) {
    const FIELD: &str = "deploymentConfig";
    let map = match value {
        Value::Object(map) => map,
        Value::Null => return out.push(Finding::Text(format!("required field \"{FIELD}\" is missing"))),
        other => return out.push(Finding::Text(invalid_type(FIELD, kind(other), "object"))),
    };
    let fields = deployment::fields();
    for (key, shape) in &fields {
        if let Some(value) = map.get(*key) {
            nested(&format!("{FIELD}.{key}"), shape, value, out);
        }
    }
    if let Some(key) = map
        .keys()
        .find(|key| fields.iter().all(|(known, _)| known != key))
    {
        out.push(Finding::Text(format!("unknown field \"{key}\"")));
    }
}

/// Checks types and required fields at every level; unknown nested keys pass.
fn nested(path: &str, shape: &Shape, value: &Value, out: &mut Vec<Finding>) {
    let want = match (shape, value) {
        (Shape::List(item), Value::Array(items)) => {
            for (at, value) in items.iter().enumerate() {
                nested(&format!("{path}.{at}"), item, value, out);
            }
            return;
        }
        (Shape::Map(item), Value::Object(map)) => {
            for (key, value) in map {
                nested(&format!("{path}.{key}"), item, value, out);
            }
            return;
        }
        (Shape::Named(name), _) => {
            let mut inner = Vec::new();
            structure(path, name, value, &mut inner);
            if !inner.is_empty() {
                out.push(Finding::Nested(inner));
            }
            return;
        }
        (Shape::Quantity | Shape::IntOrString | Shape::Float, Value::Number(_))
        | (
            Shape::Quantity | Shape::IntOrString | Shape::Str | Shape::Bytes | Shape::Time,
            Value::String(_),
        )
        | (Shape::Bool, Value::Bool(_))
        | (Shape::Any | Shape::NamedOrBool(_) | Shape::NamedOrList(_) | Shape::NamedOrTexts(_), _) => return,
        (Shape::Int | Shape::Int64, Value::Number(number)) if number.is_i64() || number.is_u64() => return,
        (Shape::List(_), _) => "array",
        (Shape::Map(_), _) => "object",
        (Shape::Str | Shape::Bytes | Shape::Time, _) => "string",
        (Shape::Bool, _) => "boolean",
        (Shape::Int | Shape::Int64, _) => "integer",
        (Shape::Float, _) => "number",
        (Shape::Quantity | Shape::IntOrString, _) => {
            return out.push(Finding::Text(format!("invalid value for field \"{path}\"")));
        }
    };
    out.push(Finding::Text(null_or_type(path, value, want)));
}

fn structure(path: &str, name: &str, value: &Value, out: &mut Vec<Finding>) {
    let Value::Object(map) = value else {
        return out.push(Finding::Text(null_or_type(path, value, "object")));
    };
    for (field, Field { shape, required, .. }) in shapes().fields(name) {
        match map.get(field) {
            Some(value) => nested(&format!("{path}.{field}"), shape, value, out),
            None if *required => {
                out.push(Finding::Text(format!(
                    "required field \"{path}.{field}\" is missing"
                )));
            }
            None => {}
        }
    }
}

/// Returns the message for a wrong type; null counts as a missing field.
fn null_or_type(path: &str, value: &Value, want: &str) -> String {
    if value.is_null() {
        format!("required field \"{path}\" is missing")
    } else {
        invalid_type(path, kind(value), want)
    }
}
