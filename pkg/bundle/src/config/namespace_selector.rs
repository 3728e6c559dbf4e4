//! `watchNamespaceSelector`: the namespaces to watch, by their labels.

use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use regex::Regex;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::WATCH_NAMESPACE_SELECTOR;
use super::words::{invalid_type, kind};

/// Keys of labels: a name, and a DNS subdomain before it.
const KEY: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
                   [A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
/// Values of labels.
const VALUE: &str = "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$";
/// Longest key: a subdomain of 253 characters, a slash and a name of 63.
const MAX_KEY: usize = 317;
/// Most labels, and most expressions: the selector is part of a URL.
const MAX_ITEMS: usize = 16;
/// Most values of an expression.
const MAX_VALUES: usize = 64;
const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

/// Returns `watchNamespaceSelector` of a configuration (`spec.config.inline`); `None` if the field is absent or invalid. Rendering
/// reports an invalid one.
pub fn namespace_selector(config: &Value) -> Option<LabelSelector> {
    let value = config.get(WATCH_NAMESPACE_SELECTOR)?;
    LabelSelector::deserialize(value)
        .ok()
        .filter(|_| findings(value).is_empty())
}

/// Returns the schema of the field.
pub(super) fn schema() -> Value {
    let key = json!({"type": "string", "maxLength": MAX_KEY, "pattern": KEY});
    let value = json!({"type": "string", "pattern": VALUE});
    let values = |least: usize, most: usize| json!({"values": {"type": "array", "minItems": least, "maxItems": most, "items": value}});
    let (some, none) = (values(1, MAX_VALUES), values(0, 0));
    json!({
        "description": "Labels of the namespaces that the operator watches, instead of watchNamespaces; the operator follows the \
                        namespaces as they come and go.",
        "type": "object", "minProperties": 1, "additionalProperties": false,
        "properties": {
            "matchLabels": {
                "description": "Labels with the values they must have.",
                "type": "object", "minProperties": 1, "maxProperties": MAX_ITEMS,
                "propertyNames": key, "additionalProperties": value,
            },
            "matchExpressions": {
                "description": "Requirements on labels, all of which must hold.",
                "type": "array", "minItems": 1, "maxItems": MAX_ITEMS,
                "items": {
                    "type": "object", "required": ["key", "operator"], "additionalProperties": false,
                    "properties": {"key": key, "operator": {"type": "string", "enum": OPERATORS}, "values": true},
                    "if": {"required": ["operator"], "properties": {"operator": {"enum": ["In", "NotIn"]}}},
                    "then": {"required": ["values"], "properties": some},
                    "else": {"properties": none},
                },
            },
        },
    })
}

/// Returns the faults of a selector.
pub(super) fn findings(value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let path = WATCH_NAMESPACE_SELECTOR;
    let Value::Object(map) = value else {
        return vec![invalid_type(path, kind(value), "object")];
    };
    if map.is_empty() {
        out.push(format!(
            "field \"{path}\" must have at least one of matchLabels, matchExpressions"
        ));
    }
    if let Some(labels) = map.get("matchLabels") {
        match_labels(&format!("{path}.matchLabels"), labels, &mut out);
    }
    if let Some(expressions) = map.get("matchExpressions") {
        let path = format!("{path}.matchExpressions");
        match expressions {
            Value::Array(items) => {
                count(&path, items.len(), 1, MAX_ITEMS, &mut out);
                for (at, item) in items.iter().enumerate().take(MAX_ITEMS) {
                    expression(&format!("{path}.{at}"), item, &mut out);
                }
            }
            other => out.push(invalid_type(&path, kind(other), "array")),
        }
    }
    unknown(path, map, &["matchLabels", "matchExpressions"], &mut out);
    out
}

fn match_labels(path: &str, labels: &Value, out: &mut Vec<String>) {
    let Value::Object(labels) = labels else {
        return out.push(invalid_type(path, kind(labels), "object"));
    };
    count(path, labels.len(), 1, MAX_ITEMS, out);
    for (key, value) in labels.iter().take(MAX_ITEMS) {
        if !is_key(key) {
            out.push(format!("keys of field \"{path}\" must match pattern \"{KEY}\""));
        }
        label_value(&format!("{path}.{}", olm_text::head(key, MAX_KEY)), value, out);
    }
}

fn expression(path: &str, item: &Value, out: &mut Vec<String>) {
    let Value::Object(map) = item else {
        return out.push(invalid_type(path, kind(item), "object"));
    };
    let field = format!("{path}.key");
    match map.get("key") {
        None => out.push(format!("required field \"{field}\" is missing")),
        Some(Value::String(key)) if is_key(key) => {}
        Some(Value::String(_)) => out.push(format!("field \"{field}\" must match pattern \"{KEY}\"")),
        Some(other) => out.push(invalid_type(&field, kind(other), "string")),
    }
    let field = format!("{path}.operator");
    let operator = match map.get("operator") {
        None => {
            out.push(format!("required field \"{field}\" is missing"));
            ""
        }
        Some(Value::String(text)) => {
            if !OPERATORS.contains(&text.as_str()) {
                out.push(format!(
                    "field \"{field}\" must be one of {}",
                    OPERATORS.join(", ")
                ));
            }
            text
        }
        Some(other) => {
            out.push(invalid_type(&field, kind(other), "string"));
            ""
        }
    };
    let field = format!("{path}.values");
    let with_values = matches!(operator, "In" | "NotIn");
    match map.get("values") {
        None if with_values => out.push(format!("required field \"{field}\" is missing")),
        None => {}
        Some(Value::Array(values)) => {
            let (least, most) = if with_values { (1, MAX_VALUES) } else { (0, 0) };
            count(&field, values.len(), least, most, out);
            for (at, value) in values.iter().enumerate().take(MAX_VALUES) {
                label_value(&format!("{field}.{at}"), value, out);
            }
        }
        Some(other) => out.push(invalid_type(&field, kind(other), "array")),
    }
    unknown(path, map, &["key", "operator", "values"], out);
}

fn label_value(path: &str, value: &Value, out: &mut Vec<String>) {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(VALUE).ok());
    match value {
        Value::String(text) if FORM.as_ref().is_none_or(|form| form.is_match(text)) => {}
        Value::String(_) => out.push(format!("field \"{path}\" must match pattern \"{VALUE}\"")),
        other => out.push(invalid_type(path, kind(other), "string")),
    }
}

fn is_key(key: &str) -> bool {
    static FORM: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(KEY).ok());
    key.chars().count() <= MAX_KEY && FORM.as_ref().is_none_or(|form| form.is_match(key))
}

fn count(path: &str, items: usize, least: usize, most: usize, out: &mut Vec<String>) {
    if items < least || items > most {
        out.push(format!(
            "field \"{path}\" must have {least} to {most} items (len={items})"
        ));
    }
}

fn unknown(path: &str, map: &Map<String, Value>, known: &[&str], out: &mut Vec<String>) {
    if let Some(key) = map.keys().find(|key| !known.contains(&key.as_str())) {
        let key = olm_text::head(key, MAX_KEY);
        out.push(format!("unknown field \"{path}.{key}\""));
    }
}
