//! One JSON value as the fields of a meta.

use crate::decode::DecodeError;
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// The fields of the object in `text`, in the order written, doubles included. Bytes that are not UTF-8
/// become U+FFFD.
pub(crate) fn fields(text: &[u8]) -> Result<Vec<(String, Value)>, DecodeError> {
    let text = String::from_utf8_lossy(text);
    let mut reader = serde_json::Deserializer::from_str(&text);
    let fields = reader
        .deserialize_map(Fields)
        .and_then(|fields| reader.end().map(|()| fields));
    fields.map_err(|source| DecodeError::Json { source })
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(String, Value)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(fields)
    }
}
