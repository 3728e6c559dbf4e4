//! Fields that a value sets.

use serde_json::Value;

use super::element::{field, item};
use super::{Identity, Set, Shape, Type};

/// Returns the fields that `value` sets.
///
/// # Errors
/// A list of a map or set has an element without key, or one twice.
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
            for value in items {
                path.push(item(list, value)?);
                walk(value, &list.element, path, out)?;
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
