//! The form in which the API server keeps built-in objects: without unknown fields, nulls and most empty values.

use serde_json::Value;

use super::{MapType, Scalar, Type};

/// Drops unknown fields, nulls, and empty texts, lists and maps of fields that are not required. A null among the texts of a
/// map is an empty text.
pub(crate) fn normalise(value: &mut Value, of: &Type) {
    match (of.resolve(), value) {
        (Type::Map(map), Value::Object(fields)) => fields.retain(|name, value| {
            let Some(of) = map.field(name) else { return false };
            if value.is_null() && !map.fields.contains_key(name) && is_text(of) {
                *value = Value::String(String::new());
            }
            normalise(value, of);
            let optional = map.element.is_none() && !map.required.contains(name);
            !(value.is_null() || optional && is_empty(value, of))
        }),
        (Type::List(list), Value::Array(items)) => {
            for item in items {
                normalise(item, &list.element);
            }
        }
        _ => {}
    }
}

fn is_text(of: &Type) -> bool {
    matches!(of.resolve(), Type::Scalar(Scalar::String | Scalar::Bytes))
}

fn is_empty(value: &Value, of: &Type) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty() && matches!(of.resolve(), Type::List(_)),
        Value::Object(fields) => fields.is_empty() && matches!(of.resolve(), Type::Map(map) if is_plain(map)),
        _ => false,
    }
}

/// Returns true for a map without named fields.
fn is_plain(map: &MapType) -> bool {
    map.fields.is_empty()
}
