//! The rules for a single field of a schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::effect::Effect;
use super::flatten::Node;
use super::keywords;
use super::literal::{field_name, show};

/// The rule of changes that no other rule compares.
pub(super) const UNHANDLED: &str = "unhandled";

/// Name of a rule, and its message.
type Violation = (&'static str, String);

/// Keys that have a rule of their own, or that contain fields with their own comparison.
const KNOWN: [&str; 18] = [
    "type",
    "required",
    "enum",
    "default",
    "minimum",
    "minLength",
    "minItems",
    "minProperties",
    "maximum",
    "maxLength",
    "maxItems",
    "maxProperties",
    "pattern",
    "nullable",
    "oneOf",
    "description",
    "properties",
    "items",
];

/// Returns the violations of replacing the field `before` with `after`. Omits changes with at most the effect
/// `passing`; without one, returns everything that upstream reports.
pub(super) fn field(before: &Node<'_>, after: &Node<'_>, passing: Option<Effect>) -> Vec<Violation> {
    let (old, new) = (before.schema, after.schema);
    let mut out = Vec::new();
    type_(old, new, &mut out);
    required(old, new, &mut out);
    enum_(old, new, &mut out);
    default(old, new, &mut out);
    bounds(old, new, &mut out);
    pattern(old, new, &mut out);
    nullable(old, new, &mut out);
    one_of(old, new, &mut out);
    let passes = |key: &str| passing.is_some_and(|passing| keywords::effect(key, before, after) <= passing);
    // Those rules are named after the key that they examine.
    out.retain(|(rule, _)| !passes(rule));
    unhandled(old, new, passes, &mut out);
    out
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Returns the elements as sorted, distinct JSON texts.
fn set(items: &[Value]) -> BTreeSet<String> {
    items.iter().map(ToString::to_string).collect()
}

fn joined(items: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    items
        .into_iter()
        .map(|item| item.as_ref().to_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

fn type_(old: &Value, new: &Value, out: &mut Vec<Violation>) {
    let (old, new) = (text(old, "type"), text(new, "type"));
    if old != new {
        out.push(("type", format!("type changed : \"{old}\" -> \"{new}\"")));
    }
}

fn required(old: &Value, new: &Value, out: &mut Vec<Violation>) {
    let old: BTreeSet<&str> = list(old, "required").iter().filter_map(Value::as_str).collect();
    let added: BTreeSet<&str> = list(new, "required")
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| !old.contains(name))
        .collect();
    if !added.is_empty() {
        out.push(("required", format!("new required fields: [{}]", joined(added))));
    }
}

fn enum_(old: &Value, new: &Value, out: &mut Vec<Violation>) {
    let (old, new) = (set(list(old, "enum")), set(list(new, "enum")));
    if old.is_empty() && !new.is_empty() {
        let message = format!(
            "enum constraint added when there was none previously : [{}]",
            joined(&new)
        );
        return out.push(("enum", message));
    }
    let removed: Vec<&String> = old.difference(&new).collect();
    if !removed.is_empty() {
        out.push((
            "enum",
            format!("allowed enum values removed : [{}]", joined(removed)),
        ));
    }
}

fn default(old: &Value, new: &Value, out: &mut Vec<Violation>) {
    let quoted = |value: &Value| format!("{:?}", value.to_string());
    let message = match (old.get("default"), new.get("default")) {
        (None, Some(new)) => format!("default added when there was none previously : {}", quoted(new)),
        (Some(old), None) => format!("default value removed : {}", quoted(old)),
        (Some(old), Some(new)) if old != new => {
            format!("default value changed : {} -> {}", quoted(old), quoted(new))
        }
        _ => return,
    };
    out.push(("default", message));
}

fn bounds(old: &Value, new: &Value, out: &mut Vec<Violation>) {
    let number = |schema: &Value, key: &str| schema.get(key).and_then(Value::as_f64);
    for (rule, is_minimum) in [
        ("minimum", true),
        ("minLength", true),
        ("minItems", true),
        ("minProperties", true),
        ("maximum", false),
        ("maxLength", false),
        ("maxItems", false),
        ("maxProperties", false),
    ] {
        let Some(now) = number(new, rule) else { continue };
        let name = if is_minimum { "minimum" } else { "maximum" };
        match number(old, rule) {
            None => {
                let message = format!("{name} constraint added when there was none previously : {now}");
                out.push((rule, message));
            }
            Some(before) if is_minimum && now > before => {
                out.push((rule, format!("minimum increased : {before} -> {now}")));
            }
            Some(before) if !is_minimum && now < before => {
                out.push((rule, format!("maximum decreased : {before} -> {now}")));
            }
            Some(_) => {}
        }
    }
}

fn pattern(old: &Value, new: &Value, out: &mut Vec<Violation>) {
    let (old, new) = (text(old, "pattern"), text(new, "pattern"));
    let verb = match (old.is_empty(), new.is_empty()) {
        _ if old == new => return,
        (true, _) => "added",
        (_, true) => "removed",
        _ => "changed",
    };
    out.push(("pattern", format!("pattern {verb} : {old:?} -> {new:?}")));
}

fn nullable(old: &Value, new: &Value, out: &mut Vec<Violation>) {
    let flag = |schema: &Value| schema.get("nullable").and_then(Value::as_bool).unwrap_or(false);
    let (old, new) = (flag(old), flag(new));
    if old != new {
        let verb = if new { "added" } else { "removed" };
        out.push(("nullable", format!("nullable {verb} : {old} -> {new}")));
    }
}

fn one_of(old: &Value, new: &Value, out: &mut Vec<Violation>) {
    let (old, new) = (set(list(old, "oneOf")), set(list(new, "oneOf")));
    if old == new {
        return;
    }
    if old.is_empty() {
        let message = format!(
            "oneOf constraint added when there was none previously: [{}]",
            joined(&new)
        );
        return out.push(("oneOf", message));
    }
    let removed: Vec<&String> = old.difference(&new).collect();
    if !removed.is_empty() {
        out.push((
            "oneOf",
            format!("allowed oneOf schemas removed: [{}]", joined(removed)),
        ));
    }
    let added: Vec<&String> = new.difference(&old).collect();
    if !added.is_empty() {
        out.push(("oneOf", format!("oneOf schemas added: [{}]", joined(added))));
    }
}

/// Refuses any difference that no rule has compared, since its effect on objects is unknown.
fn unhandled(old: &Value, new: &Value, passes: impl Fn(&str) -> bool, out: &mut Vec<Violation>) {
    let empty = Map::new();
    let (old, new) = (
        old.as_object().unwrap_or(&empty),
        new.as_object().unwrap_or(&empty),
    );
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changes: Vec<String> = keys
        .into_iter()
        .filter(|key| !is_same(key, old.get(*key), new.get(*key)) && !passes(key))
        .map(|key| {
            format!(
                "{} {} -> {}",
                field_name(key),
                show(key, old.get(key)),
                show(key, new.get(key))
            )
        })
        .collect();
    if !changes.is_empty() {
        out.push((
            UNHANDLED,
            format!("unhandled changes found ({})", changes.join("; ")),
        ));
    }
}

/// Returns true if the values are equal; absent, null, false and empty are. A schema other than that of a property or
/// an element is compared as a whole, including its descriptions, as upstream does.
fn is_same(key: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
    KNOWN.contains(&key) || meaning(old) == meaning(new)
}

fn meaning(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    })
}
