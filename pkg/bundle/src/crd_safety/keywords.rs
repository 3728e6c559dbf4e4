//! Effect of a changed schema key on objects and clients.
//!
//! Upstream refuses every change without a rule. Here a change passes if its effect is known and breaks neither objects
//! nor clients: every valid object stays valid and reads the same, and no client loses a default that it relied on, loses its
//! part of an object to server-side apply, or sees a value of a new type. Two rules let new types in: null in a field that
//! becomes `nullable`, and any value in a field whose schema goes because its object keeps all unknown fields.
//! docs/deviations.md argues each rule.

use std::collections::BTreeSet;

use serde_json::Value;

use super::effect::{Effect, truth};
use super::flatten::Node;
use super::logic;

use Effect::{Looser, Same, Unsafe};

/// Formats whose values clients keep as strings. Excludes `date-time`, `byte` and the like, for which generated clients
/// have types of their own.
const PLAIN_FORMATS: [&str; 16] = [
    "bsonobjectid",
    "cidr",
    "creditcard",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "mac",
    "password",
    "ssn",
    "uri",
    "uuid",
];

/// Returns the effect of the change of `key` between two versions of a field.
pub(super) fn effect(key: &str, old: &Node<'_>, new: &Node<'_>) -> Effect {
    let (was, is) = (old.schema.get(key), new.schema.get(key));
    match key {
        "description" | "title" | "example" | "externalDocs" => Same,
        "enum" | "pattern" | "multipleOf" if is_empty(is) => Looser,
        "uniqueItems" | "exclusiveMinimum" | "exclusiveMaximum" if !truth(is) => Looser,
        "minLength" | "minItems" | "minProperties" if number(is) == Some(0.0) => Same,
        "multipleOf" => multiple_of(was, is),
        "format" => format(old.schema, is),
        "nullable" => nullable(old.schema, new.schema),
        "default" => default(old),
        "required" => required(old.schema, new.schema),
        "allOf" | "anyOf" | "oneOf" | "not" => logic::effect(key, old.schema, new.schema),
        "additionalProperties" => additional(old.schema, new.schema),
        "x-kubernetes-validations" => validations(was, is),
        "x-kubernetes-preserve-unknown-fields" if truth(is) => Looser,
        "x-kubernetes-list-type" => same_if(word(was, "atomic") == word(is, "atomic")),
        "x-kubernetes-list-map-keys" => same_if(set(was) == set(is)),
        "x-kubernetes-map-type" => map_type(old.schema, new.schema),
        _ => Unsafe,
    }
}

fn same_if(same: bool) -> Effect {
    if same { Same } else { Unsafe }
}

fn looser_if(looser: bool) -> Effect {
    if looser { Looser } else { Unsafe }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    }
}

fn number(value: Option<&Value>) -> Option<f64> {
    value.and_then(Value::as_f64)
}

fn word<'a>(value: Option<&'a Value>, absent: &'a str) -> &'a str {
    value.and_then(Value::as_str).unwrap_or(absent)
}

fn set(value: Option<&Value>) -> BTreeSet<String> {
    let list = value.and_then(Value::as_array);
    list.into_iter().flatten().map(Value::to_string).collect()
}

fn has_default(schema: &Value) -> bool {
    schema.get("default").is_some_and(|value| !value.is_null())
}

/// Returns `Looser` if the new factor divides the old one.
fn multiple_of(was: Option<&Value>, is: Option<&Value>) -> Effect {
    let whole = |value: Option<&Value>| value.and_then(Value::as_u64).filter(|number| *number > 0);
    looser_if(matches!((whole(was), whole(is)), (Some(was), Some(is)) if was % is == 0))
}

fn format(old: &Value, is: Option<&Value>) -> Effect {
    let string = old.get("type").and_then(Value::as_str) == Some("string");
    looser_if(string && is_empty(is) && PLAIN_FORMATS.contains(&word(old.get("format"), "")))
}

/// Reports the effect of `nullable`. If the field has a default, a null that the default used to replace would now
/// stay.
fn nullable(old: &Value, new: &Value) -> Effect {
    looser_if(truth(new.get("nullable")) && !has_default(old) && !has_default(new))
}

/// Returns `Looser` if the field was required: a new default never applies to an existing object.
fn default(old: &Node<'_>) -> Effect {
    let was_required = old.property_of.is_some_and(|(parent, name)| {
        let required = parent.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|other| other.as_str() == Some(name)))
    });
    looser_if(was_required && !old.in_logic && !has_default(old.schema))
}

/// Returns `Looser` if every newly required field has a default, which applies before validation. The field must have
/// had a default before, or be new in an object that kept no unknown fields.
fn required(old: &Value, new: &Value) -> Effect {
    let (then, now) = (old.get("properties"), new.get("properties"));
    let kept_unknown =
        truth(old.get("x-kubernetes-preserve-unknown-fields")) || old.get("additionalProperties").is_some();
    let before = set(old.get("required"));
    let names = new
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut added = names
        .filter(|name| !before.contains(&name.to_string()))
        .filter_map(Value::as_str);
    looser_if(added.all(|name| {
        let property = |all: Option<&'_ Value>| all.and_then(|all| all.get(name)).map(has_default);
        property(now) == Some(true) && property(then).unwrap_or(!kept_unknown)
    }))
}

/// Schemas on both sides are compared as fields of their own. If no fields could be kept before, adding them is
/// `Looser`.
fn additional(old: &Value, new: &Value) -> Effect {
    let of = |schema: &Value| schema.get("additionalProperties").cloned().unwrap_or(Value::Null);
    let is_object = |schema: &Value| schema.get("type").and_then(Value::as_str) == Some("object");
    let has_properties = old
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|properties| !properties.is_empty());
    match (of(old), of(new)) {
        (Value::Object(_), Value::Object(_)) => Same,
        (Value::Null, Value::Object(_)) => looser_if(
            is_object(old) && !has_properties && !truth(old.get("x-kubernetes-preserve-unknown-fields")),
        ),
        // The object keeps all fields.
        (Value::Object(_), Value::Null) => looser_if(truth(new.get("x-kubernetes-preserve-unknown-fields"))),
        _ => Unsafe,
    }
}

/// Compares the rules, without their messages.
fn validations(was: Option<&Value>, is: Option<&Value>) -> Effect {
    let rules = |value: Option<&Value>| -> BTreeSet<(String, bool)> {
        let list = value.and_then(Value::as_array);
        let rule = |rule: &Value| {
            let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
            (text.to_owned(), truth(rule.get("optionalOldSelf")))
        };
        list.into_iter().flatten().map(rule).collect()
    };
    let (was, is) = (rules(was), rules(is));
    if was == is {
        Same
    } else {
        looser_if(is.is_subset(&was))
    }
}

/// Returns `Looser` for an object with at most one plain field: two appliers cannot share it, so atomic ownership
/// changes nothing.
fn map_type(old: &Value, new: &Value) -> Effect {
    let of = |schema: &'_ Value| word(schema.get("x-kubernetes-map-type"), "granular").to_owned();
    let single = |schema: &Value| {
        let properties = schema.get("properties").and_then(Value::as_object);
        let plain = |field: &Value| {
            matches!(
                field.get("type").and_then(Value::as_str),
                Some("string" | "integer" | "number" | "boolean")
            )
        };
        properties.is_none_or(|all| all.len() <= 1 && all.values().all(plain))
            && schema.get("additionalProperties").is_none()
            && !truth(schema.get("x-kubernetes-preserve-unknown-fields"))
    };
    match (of(old).as_str(), of(new).as_str()) {
        (was, is) if was == is => Same,
        ("granular", "atomic") => looser_if(single(old) && single(new)),
        _ => Unsafe,
    }
}

/// Returns true if a removed field stays in the objects because its parent keeps unknown fields, so that only the
/// field's checks go. False if the field has defaults, which would go too, or lists and maps that server-side apply
/// merges by their own rules.
pub(super) fn is_only_checks(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().all(|(key, value)| match key.as_str() {
            "default" => false,
            "x-kubernetes-list-type" => value.as_str() == Some("atomic"),
            "x-kubernetes-map-type" => value.as_str() == Some("granular"),
            _ => is_only_checks(value),
        }),
        Value::Array(list) => list.iter().all(is_only_checks),
        _ => true,
    }
}
