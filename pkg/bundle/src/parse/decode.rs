//! Typed reading of untyped maps, with upstream's converter errors.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::shape::{go_kind, integer};

/// A JSON object; null and an absent value are empty objects.
#[derive(Clone, Copy)]
pub(super) struct Object<'a>(Option<&'a Map<String, Value>>);

impl<'a> Object<'a> {
    pub(super) fn of(value: &'a Value) -> Result<Self, String> {
        match value {
            Value::Object(map) => Ok(Self(Some(map))),
            Value::Null => Ok(Self(None)),
            _ => Err(format!("cannot restore struct from: {}", go_kind(value))),
        }
    }

    pub(super) fn get(self, key: &str) -> Option<&'a Value> {
        self.0?.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn object(self, key: &str) -> Result<Self, String> {
        self.get(key).map_or(Ok(Self(None)), Self::of)
    }

    pub(super) fn text(self, key: &str) -> Result<String, String> {
        Ok(self.optional_text(key)?.unwrap_or_default())
    }

    pub(super) fn optional_text(self, key: &str) -> Result<Option<String>, String> {
        self.get(key).map(string).transpose()
    }

    pub(super) fn integer(self, key: &str) -> Result<i64, String> {
        self.get(key).map_or(Ok(0), |value| {
            integer(value).ok_or_else(|| "unrecognized type: int32".to_owned())
        })
    }

    pub(super) fn flag(self, key: &str) -> Result<bool, String> {
        self.get(key).map_or(Ok(false), |value| {
            value
                .as_bool()
                .ok_or_else(|| "unrecognized type: bool".to_owned())
        })
    }

    /// Returns the elements of a list; `None` if there is no list.
    pub(super) fn list(self, key: &str) -> Result<Option<&'a [Value]>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(format!("cannot restore slice from {}", go_kind(other))),
        }
    }

    pub(super) fn each<T>(
        self,
        key: &str,
        read: impl Fn(&'a Value) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        self.list(key)?.unwrap_or_default().iter().map(read).collect()
    }

    pub(super) fn texts(self, key: &str) -> Result<Option<Vec<String>>, String> {
        self.list(key)?
            .map(|items| items.iter().map(string).collect())
            .transpose()
    }

    pub(super) fn text_map(self, key: &str) -> Result<BTreeMap<String, String>, String> {
        match self.get(key) {
            None => Ok(BTreeMap::new()),
            Some(Value::Object(map)) => map
                .iter()
                .map(|(key, value)| Ok((key.clone(), string(value)?)))
                .collect(),
            Some(other) => Err(format!("cannot restore map from {}", go_kind(other))),
        }
    }
}

/// Reads a text; null is the empty text.
pub(super) fn string(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Null => Ok(String::new()),
        _ => Err("unrecognized type: string".to_owned()),
    }
}
