//! Defects of applied configurations: fields that a type does not have, and keys that a list has twice.

use std::collections::BTreeSet;

use serde_json::Value;

use super::element::item;
use super::{Identity, Type};

/// Returns the path of the first field that the type does not have.
pub(crate) fn undeclared(value: &Value, of: &Type) -> Option<String> {
    match (of.resolve(), value) {
        (Type::List(list), Value::Array(items)) => {
            items.iter().find_map(|item| undeclared(item, &list.element))
        }
        (Type::Map(map), Value::Object(fields)) => {
            fields.iter().find_map(|(name, value)| match map.field(name) {
                Some(of) => undeclared(value, of).map(|path| format!(".{name}{path}")),
                None => Some(format!(".{name}")),
            })
        }
        _ => None,
    }
}

/// Returns the first key that a set or map has twice.
pub(crate) fn duplicate(value: &Value, of: &Type) -> Option<String> {
    match (of.resolve(), value) {
        (Type::List(list), Value::Array(items)) if !matches!(list.identity, Identity::Atomic) => {
            let mut seen = BTreeSet::new();
            items.iter().find_map(|value| {
                let key = item(list, value).ok()?;
                if seen.insert(key.clone()) {
                    duplicate(value, &list.element)
                } else {
                    Some(key)
                }
            })
        }
        (Type::Map(map), Value::Object(fields)) if !map.atomic => fields
            .iter()
            .find_map(|(name, value)| duplicate(value, map.field(name)?)),
        _ => None,
    }
}
