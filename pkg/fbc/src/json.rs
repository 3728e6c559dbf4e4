//! Decoder of a JSON object into the fields of a meta, canonical while it is read.
//!
//! No tree of values is built: each value is written to its place in the canonical text at once. If the keys of an
//! object are not sorted, the object is sorted afterwards. Memory is twice the size of the text.

use crate::canonical::{self, MAX_KEYS};
use crate::error::DecodeError;
use olm_yaml::YamlError;
use serde::de::{DeserializeSeed, Deserializer as _, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, error::Category};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Returns the fields of the object in `text` with the canonical text of each value. The last value of a repeated key
/// wins.
pub(crate) fn fields(text: &[u8]) -> Result<Vec<(String, String)>, DecodeError> {
    let read = |text: &str| {
        let mut reader = serde_json::Deserializer::from_str(text);
        let fields = reader.deserialize_map(Fields)?;
        reader.end().map(|()| fields)
    };
    olm_yaml::read_json(text, read).map_err(|source| match source.classify() {
        // The text is JSON but not an object.
        Category::Data if !text.starts_with(b"{") => DecodeError::NotAnObject,
        _ => DecodeError::Text(YamlError::Json { source }),
    })
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = BTreeMap::new();
        let mut scratch = String::new();
        while let Some(key) = map.next_key()? {
            let mut out = String::new();
            map.next_value_seed(Canonical {
                out: &mut out,
                scratch: &mut scratch,
            })?;
            fields.insert(key, out);
            if fields.len() > MAX_KEYS {
                return Err(A::Error::custom(DecodeError::TooManyKeys { limit: MAX_KEYS }));
            }
        }
        Ok(fields.into_iter().collect())
    }
}

/// Deserializer that appends the canonical text of a value.
struct Canonical<'a> {
    out: &'a mut String,
    /// Buffer for sorting the members of an object; empty between two uses.
    scratch: &'a mut String,
}

impl<'de> DeserializeSeed<'de> for Canonical<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

/// Position of an object's member in the canonical text, `"key":value`.
struct Member<'de> {
    key: Cow<'de, str>,
    start: usize,
    end: usize,
}

impl<'de> Visitor<'de> for Canonical<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.out.push_str("null");
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.out.push_str(if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        canonical::number(&value.into(), self.out);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        canonical::number(&value.into(), self.out);
        Ok(())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        let value = Number::from_f64(value).ok_or_else(|| E::custom("number out of range"))?;
        canonical::number(&value, self.out);
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        canonical::string(text, self.out);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.out.push('[');
        let start = self.out.len();
        loop {
            let before = self.out.len();
            if before > start {
                self.out.push(',');
            }
            let item = Canonical {
                out: &mut *self.out,
                scratch: &mut *self.scratch,
            };
            if items.next_element_seed(item)?.is_none() {
                self.out.truncate(before);
                break;
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.out.push('{');
        let first = self.out.len();
        let mut members: Vec<Member<'de>> = Vec::new();
        let mut sorted = true;
        while let Some(key) = map.next_key_seed(Key)? {
            sorted &= members.last().is_none_or(|last| *last.key < *key);
            if !members.is_empty() {
                self.out.push(',');
            }
            let start = self.out.len();
            canonical::string(&key, self.out);
            self.out.push(':');
            map.next_value_seed(Canonical {
                out: &mut *self.out,
                scratch: &mut *self.scratch,
            })?;
            members.push(Member {
                key,
                start,
                end: self.out.len(),
            });
        }
        if !sorted {
            reorder(self.out, self.scratch, first, &mut members)
                .ok_or_else(|| A::Error::custom("an object's members cannot be sorted"))?;
        }
        self.out.push('}');
        Ok(())
    }
}

/// Sorts the members that fill `out` from `first` on. The last of equal keys wins.
fn reorder(
    out: &mut String,
    scratch: &mut String,
    first: usize,
    members: &mut Vec<Member<'_>>,
) -> Option<()> {
    // Later members come first among equals, so that the effective one is kept.
    members.sort_by(|a, b| a.key.cmp(&b.key).then(b.start.cmp(&a.start)));
    members.dedup_by(|later, kept| later.key == kept.key);
    scratch.clear();
    for (at, member) in members.iter().enumerate() {
        if at > 0 {
            scratch.push(',');
        }
        scratch.push_str(out.get(member.start..member.end)?);
    }
    out.truncate(first);
    out.push_str(scratch);
    Some(())
}

/// Key, borrowed if it has no escapes.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::fields;

    fn canonical(text: &str) -> String {
        let fields = fields(text.as_bytes()).unwrap();
        let all: Vec<_> = fields
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        all.join(" ")
    }

    #[test]
    fn sorted_at_every_level_and_the_last_double_counts() {
        assert_eq!(
            canonical(r#"{"b":{"z":1,"a":[{"y":[],"x":{}}],"z":2},"a":[1,[],[2]], "a":null}"#),
            r#"a=null b={"a":[{"x":{},"y":[]}],"z":2}"#
        );
        assert_eq!(
            canonical(r#"{"k":{"b":1,"\u0061":{"d":1,"c":2},"a":{"f":1,"e":2}}}"#),
            r#"k={"a":{"e":2,"f":1},"b":1}"#
        );
    }

    #[test]
    fn broken_text_is_refused() {
        for text in ["{", "{}{}", r#"{"a":}"#, r#"{"a":1,}"#, "[]", r#"{"a":1e999}"#] {
            assert!(fields(text.as_bytes()).is_err(), "{text}");
        }
    }
}
