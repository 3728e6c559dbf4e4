//! Decoder of a JSON object into the fields of a meta, canonical while it is read.
//!
//! No tree of values is built: each value is written to its place in the canonical text at once. If the keys of an
//! object are not sorted, the object is sorted afterwards. Memory is twice the size of the text, and eight bytes for each
//! member of the largest object.

mod copy;
mod members;

use crate::canonical::{self, Fields};
use crate::error::DecodeError;
use copy::copy;
use members::{Member, reorder};
use olm_yaml::YamlError;
use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, error::Category};
use std::borrow::Cow;
use std::fmt;

/// Returns the fields of the object in `text` with the canonical text of each value, at most `limit` bytes. The last
/// value of a repeated key wins.
///
/// `None` for an object whose first fields tell that it belongs to another package than `package`; the others are only checked to be
/// JSON.
pub(crate) fn fields(
    text: &[u8],
    limit: usize,
    package: Option<&str>,
) -> Result<Option<Fields>, DecodeError> {
    let read = match copy(text, limit, package) {
        Some(read) => read,
        None => parse(text, limit, package)?,
    };
    match read {
        Read::Fields(fields) => Ok(Some(fields)),
        Read::OfOther => Ok(None),
        // A later field may tell of another package: the last value of a repeated key wins.
        Read::Ambiguous => fields(text, limit, None),
    }
}

/// Result of reading a text.
enum Read {
    Fields(Fields),
    OfOther,
    /// Its first fields tell of another package, and a later one tells again.
    Ambiguous,
}

/// Returns an empty object for the fields of a text of `length` bytes.
fn fields_for(length: usize, limit: usize, package: Option<&str>) -> Fields {
    Fields::with_capacity(match package {
        // Most objects are those of other packages, of which a few short fields are kept.
        Some(_) => 0,
        None => length.min(limit),
    })
}

fn parse(text: &[u8], limit: usize, package: Option<&str>) -> Result<Read, DecodeError> {
    // Serde passes on messages only, so the typed error is kept here.
    let mut refusal = None;
    let read = |text: &str| {
        let mut reader = serde_json::Deserializer::from_str(text);
        let object = Object {
            length: text.len(),
            limit,
            package,
            refusal: &mut refusal,
        };
        let object = reader.deserialize_map(object)?;
        reader.end().map(|()| object)
    };
    olm_yaml::read_json(text, read).map_err(|source| match (refusal, source.classify()) {
        (Some(refusal), _) => refusal,
        // The text is JSON but not an object.
        (None, Category::Data) if !text.starts_with(b"{") => DecodeError::NotAnObject,
        _ => DecodeError::Text(YamlError::Json { source }),
    })
}

/// Visitor of the top-level object.
struct Object<'a> {
    /// Length of the text, in bytes.
    length: usize,
    limit: usize,
    /// The package whose objects are wanted; all if absent.
    package: Option<&'a str>,
    refusal: &'a mut Option<DecodeError>,
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = Read;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = fields_for(self.length, self.limit, self.package);
        let mut scratch = String::new();
        while let Some(key) = map.next_key::<String>()? {
            let tells = self.package.is_some() && canonical::tells_owner(&key);
            map.next_value_seed(&mut Writer {
                out: fields.buffer(),
                scratch: &mut scratch,
                limit: self.limit,
                refusal: &mut *self.refusal,
            })?;
            fields
                .add(key)
                .map_err(|error| refuse(&mut *self.refusal, error))?;
            if tells && self.package.is_some_and(|package| fields.are_of_other(package)) {
                return skip(map);
            }
        }
        Ok(Read::Fields(fields))
    }
}

/// Passes over the other fields of an object that belongs to another package.
fn skip<'de, A: MapAccess<'de>>(mut map: A) -> Result<Read, A::Error> {
    let mut tells = false;
    while let Some((key, IgnoredAny)) = map.next_entry::<Cow<'de, str>, _>()? {
        tells |= canonical::tells_owner(&key);
    }
    Ok(if tells { Read::Ambiguous } else { Read::OfOther })
}

/// Keeps a typed error; returns the error that ends the parsing.
fn refuse<E: serde::de::Error>(refusal: &mut Option<DecodeError>, error: DecodeError) -> E {
    let message = E::custom(&error);
    *refusal = Some(error);
    message
}

/// Writer of canonical text: a deserializer that appends each value to `out`.
struct Writer<'a> {
    out: &'a mut String,
    /// Buffer for sorting the members of an object; empty between two uses.
    scratch: &'a mut String,
    /// Maximum length of `out`, in bytes: a number such as `1e20` is longer in canonical form.
    limit: usize,
    refusal: &'a mut Option<DecodeError>,
}

impl<'de> DeserializeSeed<'de> for &mut Writer<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(&mut *self)?;
        if self.out.len() > self.limit {
            let limit = self.limit;
            return Err(refuse(self.refusal, DecodeError::TooLarge { limit }));
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for &mut Writer<'_> {
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
            if items.next_element_seed(&mut *self)?.is_none() {
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
        let mut members: Vec<Member> = Vec::new();
        let mut sorted = true;
        while let Some(key) = map.next_key_seed(Key)? {
            if !members.is_empty() {
                self.out.push(',');
            }
            let start = self.out.len();
            canonical::string(&key, self.out);
            self.out.push(':');
            map.next_value_seed(&mut *self)?;
            let member = Member::new(start, self.out.len())
                .ok_or_else(|| serde::de::Error::custom("the text is larger than 4 GiB"))?;
            sorted &= members
                .last()
                .is_none_or(|last| last.compare(member, self.out).is_lt());
            members.push(member);
        }
        if !sorted {
            reorder(self.out, self.scratch, first, &mut members);
        }
        self.out.push('}');
        Ok(())
    }
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
    use super::{DecodeError, Fields, fields};

    fn canonical(text: &str) -> String {
        let fields = whole(text.as_bytes(), 1000).unwrap();
        let all: Vec<_> = fields
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        all.join(" ")
    }

    fn whole(text: &[u8], limit: usize) -> Result<Fields, DecodeError> {
        fields(text, limit, None).map(Option::unwrap)
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
    fn keys_are_sorted_as_they_are_read_not_as_they_are_escaped() {
        assert_eq!(
            canonical(
                r#"{"k":{"]":1,"\\":2,"[":3,"\"":4,"!":5,"\u2028":6,"\u2030":7,"\u2027":8,"\n":9,"\u001f":0,"a":1,"a\u0000":2}}"#
            ),
            "k={\"\\n\":9,\"\\u001f\":0,\"!\":5,\"\\\"\":4,\"[\":3,\"\\\\\":2,\"]\":1,\"a\":1,\"a\\u0000\":2,\"\u{2027}\":8,\"\\u2028\":6,\"\u{2030}\":7}"
        );
    }

    #[test]
    fn text_that_grows_beyond_the_limit_is_refused() {
        let error = whole(br#"{"a":[1e20,1e20]}"#, 40).unwrap_err();
        assert!(matches!(error, DecodeError::TooLarge { limit: 40 }), "{error}");
        assert!(whole(br#"{"a":[1e20,1e20]}"#, 45).is_ok());
    }

    #[test]
    fn broken_text_is_refused() {
        for text in ["{", "{}{}", r#"{"a":}"#, r#"{"a":1,}"#, "[]", r#"{"a":1e999}"#] {
            assert!(whole(text.as_bytes(), 1000).is_err(), "{text}");
        }
    }
}
