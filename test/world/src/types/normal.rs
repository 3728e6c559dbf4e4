//! The form in which the API server keeps built-in objects: without unknown fields, nulls and most empty values.

use serde_json::Value;

use super::{MapType, Type};

/// Drops unknown fields, nulls, and empty texts, lists and maps of fields that are not required.
pub(crate) fn normalise(value: &mut Value, of: &Type) {
    match (of.resolve(), value) {
        (Type::Map(map), Value::Object(fields)) => fields.retain(|name, value| {
            let Some(of) = map.field(name) else { return false };
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
