//! Keys of list elements.

use serde_json::{Map, Value};

use super::{Identity, ListType, Type};

/// Returns the path element of a field.
pub(super) fn field(name: &str) -> String {
    format!("f:{name}")
}

/// Returns the path element of a list's element.
///
/// # Errors
/// The element has no key.
pub(super) fn item(list: &ListType, value: &Value) -> Result<String, String> {
    match &list.identity {
        Identity::Atomic => Err("the list is one value".into()),
        Identity::Set => match value {
            Value::Null | Value::Object(_) | Value::Array(_) => {
                Err("associative list with an element that is no scalar".into())
            }
            scalar => Ok(format!("v:{scalar}")),
        },
        Identity::Keys(keys) => {
            let defaults = match list.element.resolve() {
                Type::Map(map) => Some(&map.defaults),
                _ => None,
            };
            let mut found = Map::new();
            for key in keys {
                let default = || defaults.and_then(|defaults| defaults.get(key));
                if let Some(value) = value.get(key).or_else(default) {
                    found.insert(key.clone(), value.clone());
                }
            }
            if found.is_empty() {
                let names = keys.join(", ");
                return Err(format!(
                    "associative list with keys has an element that omits all key fields {names} (and doesn't have default values for any key fields)"
                ));
            }
            Ok(format!("k:{}", Value::Object(found)))
        }
    }
}
