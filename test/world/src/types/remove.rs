//! Removing fields from a value.

use serde_json::{Map, Value};

use super::element::{field, item};
use super::{Identity, Set, Shape, Type};

/// Returns `value` without the fields of `fields`; `None` if nothing of a list or map is left.
pub(crate) fn remove(value: &Value, fields: &Set, of: &Type) -> Option<Value> {
    match (of.shape(value), value) {
        (Shape::List(list), Value::Array(items)) => {
            if items.is_empty() || matches!(list.identity, Identity::Atomic) {
                return None;
            }
            let kept: Vec<Value> = items
                .iter()
                .filter_map(|value| {
                    let key = item(list, value).unwrap_or_default();
                    if fields.has(&key) {
                        return None;
                    }
                    match fields.below(&key) {
                        Some(below) => Some(remove(value, below, &list.element).unwrap_or(Value::Null)),
                        None => Some(value.clone()),
                    }
                })
                .collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        (Shape::Map(map), Value::Object(values)) => {
            if values.is_empty() || map.atomic {
                return None;
            }
            let mut kept = Map::new();
            for (name, value) in values {
                let key = field(name);
                if fields.has(&key) {
                    continue;
                }
                let value = match fields.below(&key) {
                    Some(below) => {
                        remove(value, below, map.field(name).unwrap_or(&Type::Any)).unwrap_or(Value::Null)
                    }
                    None => value.clone(),
                };
                kept.insert(name.clone(), value);
            }
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        _ => Some(value.clone()),
    }
}
