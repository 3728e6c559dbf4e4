//! Values that are kept as JSON text, without a tree of values in between: such a tree takes ten times the length of its text.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::value::RawValue;

/// Reads a value and keeps its text; `None` if it is null. A `RawValue` cannot be read everywhere: an event of a watch may name its type
/// after the object.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    let mut text = Vec::new();
    Writer(&mut text).deserialize(deserializer)?;
    if text == b"null" {
        return Ok(None);
    }
    let text = String::from_utf8(text).map_err(D::Error::custom)?;
    RawValue::from_string(text).map(Some).map_err(D::Error::custom)
}

/// Writes what it visits.
struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn scalar<E: Error>(self, value: &(impl Serialize + ?Sized)) -> Result<(), E> {
        serde_json::to_writer(self.0, value).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.scalar(&value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.scalar(&value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.scalar(&value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.scalar(&value)
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.scalar(value)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.scalar(&())
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.scalar(&())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.0.push(b'[');
        let start = self.0.len();
        while seq.next_element_seed(Writer(self.0))?.is_some() {
            self.0.push(b',');
        }
        self.close(start, b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.push(b'{');
        let start = self.0.len();
        while map.next_key_seed(Writer(self.0))?.is_some() {
            self.0.push(b':');
            map.next_value_seed(Writer(self.0))?;
            self.0.push(b',');
        }
        self.close(start, b'}');
        Ok(())
    }
}

impl Writer<'_> {
    /// Ends a list or an object whose content begins at `start`, and follows the comma after its last element.
    fn close(self, start: usize, end: u8) {
        if self.0.len() > start {
            self.0.pop();
        }
        self.0.push(end);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_text_has_the_value_wherever_it_is_read_from() {
        for json in [
            "[]",
            "{}",
            "[[],{},[1,-2,3.5,1e300,18446744073709551615]]",
            r#"{"b":null,"a":[true,false,null],"quo\"ted\n":{"é":"\u0000\\"}}"#,
            "\"text\"",
            "0.1",
        ] {
            let value: Value = serde_json::from_str(json).unwrap();
            let of_text = text(&mut serde_json::Deserializer::from_str(json))
                .unwrap()
                .unwrap();
            let of_value = text(value.clone()).unwrap().unwrap();
            for text in [of_text, of_value] {
                assert_eq!(serde_json::from_str::<Value>(text.get()).unwrap(), value);
            }
        }
        assert!(
            text(&mut serde_json::Deserializer::from_str("null"))
                .unwrap()
                .is_none()
        );
        assert!(text(&mut serde_json::Deserializer::from_str("[1,")).is_err());
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert!(text(&mut serde_json::Deserializer::from_str(&deep)).is_err());
    }
}
