//! Conversion of values as reading into Go's types and writing again does it.

use serde_json::{Map, Value};

use super::presence::{self, Presence};
use super::{Field, Shape, Shapes, go_kind, scalar};

impl Shapes {
    /// Converts `value` through the structure `name`. The error is upstream's.
    pub(crate) fn normalize(&self, name: &str, value: &Value) -> Result<Value, String> {
        let empty = Map::new();
        let map = match value {
            Value::Object(map) => map,
            Value::Null => &empty,
            _ => return Err(format!("cannot restore struct from: {}", go_kind(value))),
        };
        let mut out = Map::new();
        for (field, Field { shape, presence, .. }) in self.fields(name) {
            let written = match (map.get(field).filter(|value| !value.is_null()), presence) {
                (Some(given), _) => {
                    let value = self.convert(shape, given)?;
                    let dropped = *presence == Presence::UnlessEmpty && presence::is_empty(&value);
                    (!dropped).then_some(value)
                }
                (None, Presence::OrNull) => Some(Value::Null),
                (None, Presence::OrEmpty) => Some(self.convert(shape, &Value::Null)?),
                (None, Presence::AsGiven | Presence::UnlessEmpty) => None,
            };
            out.extend(written.map(|value| (field.clone(), value)));
        }
        Ok(Value::Object(out))
    }

    /// Converts `value` through `shape`; null becomes the empty value of the shape.
    pub(crate) fn convert(&self, shape: &Shape, value: &Value) -> Result<Value, String> {
        match (shape, value) {
            (Shape::Any, _) | (Shape::NamedOrBool(_), Value::Bool(_)) => Ok(value.clone()),
            (
                Shape::List(_)
                | Shape::Map(_)
                | Shape::NamedOrBool(_)
                | Shape::NamedOrList(_)
                | Shape::NamedOrTexts(_),
                Value::Null,
            ) => Ok(Value::Null),
            (Shape::List(item), Value::Array(items)) => items
                .iter()
                .map(|value| self.convert(item, value))
                .collect::<Result<_, _>>()
                .map(Value::Array),
            (Shape::Map(item), Value::Object(map)) => {
                let convert = |(key, value): (&String, &Value)| Ok((key.clone(), self.convert(item, value)?));
                map.iter()
                    .map(convert)
                    .collect::<Result<_, String>>()
                    .map(Value::Object)
            }
            (Shape::List(_), _) => Err(format!("cannot restore slice from {}", go_kind(value))),
            (Shape::Map(_), _) => Err(format!("cannot restore map from {}", go_kind(value))),
            (Shape::NamedOrTexts(_), Value::Array(items)) if !items.is_empty() => {
                self.convert(&Shape::List(Box::new(Shape::Str)), value)
            }
            (Shape::NamedOrList(name), Value::Array(items)) if !items.is_empty() => {
                self.convert(&Shape::List(Box::new(Shape::Named(name.clone()))), value)
            }
            (
                Shape::Named(name)
                | Shape::NamedOrBool(name)
                | Shape::NamedOrList(name)
                | Shape::NamedOrTexts(name),
                Value::Object(_),
            )
            | (Shape::Named(name), _) => self.normalize(name, value),
            // Other values are read as null.
            (Shape::NamedOrList(_) | Shape::NamedOrTexts(_), _) => Ok(Value::Null),
            (Shape::NamedOrBool(_), _) => Err("boolean or JSON schema expected".to_owned()),
            (
                Shape::Str
                | Shape::Bytes
                | Shape::Bool
                | Shape::Int
                | Shape::Int64
                | Shape::Float
                | Shape::Quantity
                | Shape::IntOrString
                | Shape::Time,
                _,
            ) => scalar::convert(shape, value),
        }
    }
}
