//! Fields that a value sets.

use std::collections::BTreeMap;

use serde_json::Value;

use super::element::{field, item};
use super::{Identity, Set, Shape, Type};

/// Returns the fields that `value` sets.
///
/// # Errors
/// A list of a map or set has an element without key.
pub(crate) fn to_set(value: &Value, of: &Type) -> Result<Set, String> {
    let mut set = Set::default();
    walk(value, of, &mut Vec::new(), &mut set)?;
    Ok(set)
}

fn walk(value: &Value, of: &Type, path: &mut Vec<String>, out: &mut Set) -> Result<(), String> {
    match (of.shape(value), value) {
        (Shape::Scalar, _) => out.insert(path),
        (Shape::List(list), _) if matches!(list.identity, Identity::Atomic) => out.insert(path),
        (Shape::List(list), Value::Array(items)) => {
            let keys = items
                .iter()
                .map(|value| item(list, value))
                .collect::<Result<Vec<_>, _>>()?;
            let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
            for key in &keys {
                *counts.entry(key).or_default() += 1;
            }
            for (key, value) in keys.iter().zip(items) {
                path.push(key.clone());
                // Elements with one key are one value.
                if counts.get(key) == Some(&1) {
                    walk(value, &list.element, path, out)?;
                }
                out.insert(path);
                path.pop();
            }
        }
        (Shape::Map(map), _) if map.atomic => out.insert(path),
        (Shape::Map(map), Value::Object(fields)) => {
            for (name, value) in fields {
                path.push(field(name));
                walk(value, map.field(name).unwrap_or(&Type::Any), path, out)?;
                let bare = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                if bare || !map.fields.contains_key(name) {
                    out.insert(path);
                }
                path.pop();
            }
        }
        _ => {}
    }
    Ok(())
}
