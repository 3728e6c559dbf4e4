//! Canonical form of a meta, in which it is stored, served and hashed.
//!
//! Keys are sorted bytewise at every level, and there is no white space. Only the characters that JSON requires and
//! U+2028 and U+2029 are escaped. Numbers are written like Go's encoder writes them. Integers of up to 64 bits keep
//! their digits.

use crate::Meta;
use crate::error::{DecodeError, MAX_SHOWN, MAX_SHOWN_KEYS};
use olm_text::cut;
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

/// Maximum number of top-level keys of a meta. Each is stored separately and compared with all others; real metas have
/// less than twenty.
pub(crate) const MAX_KEYS: usize = 16_384;

/// Maximum length of a schema, package or name, in bytes. The index sorts them in memory; Kubernetes allows 253 bytes.
pub(crate) const MAX_NAME: usize = 16 * 1024;

/// Top-level fields of an object: its keys, and the canonical text of all values in one buffer.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    text: String,
    /// End of the last field's value in `text`.
    end: usize,
    /// Range of each value in `text`, by key.
    ranges: BTreeMap<String, Range<usize>>,
}

impl Fields {
    /// Creates an empty object, with a buffer for values of `capacity` bytes.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            text: String::with_capacity(capacity),
            ..Self::default()
        }
    }

    /// Returns the buffer, to which the caller appends the canonical text of the next field's value.
    pub(crate) fn buffer(&mut self) -> &mut String {
        &mut self.text
    }

    /// Adds a field whose value is the text appended to the buffer since the previous field. The last value of a repeated
    /// key wins.
    ///
    /// # Errors
    /// [`DecodeError::TooManyKeys`].
    pub(crate) fn add(&mut self, key: String) -> Result<(), DecodeError> {
        self.ranges.insert(key, self.end..self.text.len());
        self.end = self.text.len();
        if self.ranges.len() > MAX_KEYS {
            return Err(DecodeError::TooManyKeys { limit: MAX_KEYS });
        }
        Ok(())
    }

    /// Returns true if the fields so far tell that the object belongs to another package than `package`.
    pub(crate) fn are_of_other(&self, package: &str) -> bool {
        let text = |wanted: &str| {
            let range = self.ranges.get(wanted)?;
            serde_json::from_str::<String>(self.text.get(range.clone())?).ok()
        };
        let owner = match text("schema") {
            None => return false,
            Some(schema) if schema == crate::schema::PACKAGE => text("name"),
            Some(_) => text("package"),
        };
        owner.is_some_and(|owner| !owner.is_empty() && owner != package)
    }

    /// Returns the fields with the canonical text of each value, sorted by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ranges
            .iter()
            .map(|(key, range)| (key.as_str(), self.text.get(range.clone()).unwrap_or_default()))
    }
}

/// Builds the meta of an object.
///
/// # Errors
/// [`DecodeError`] for keys that differ in case only, and for a schema, package or name that is no string or too long.
pub(crate) fn meta(fields: &Fields) -> Result<Meta, DecodeError> {
    let mut folded: Vec<_> = fields
        .iter()
        .map(|(key, value)| (fold(key), key, value))
        .collect();
    folded.sort_unstable();
    let equal = |pair: &&[(Cow<str>, _, _)]| matches!(pair, [(a, ..), (b, ..)] if a == b);
    if let Some((key, ..)) = folded.windows(2).find(equal).and_then(<[_]>::first) {
        let mut same = folded.iter().filter(|(other, ..)| other == key);
        let shown = same.by_ref().take(MAX_SHOWN_KEYS);
        let mut keys: Vec<_> = shown
            .map(|(_, key, _)| cut(key, MAX_SHOWN).into_owned())
            .collect();
        keys.extend(same.next().map(|_| "…".to_owned()));
        return Err(DecodeError::DuplicateKeys {
            key: cut(key, MAX_SHOWN).into_owned(),
            keys,
        });
    }
    let text = |wanted: &'static str| match folded.iter().find(|(key, ..)| key == wanted) {
        None => Ok(String::new()),
        Some((.., value)) if value.len() > MAX_NAME => Err(DecodeError::NameTooLong {
            key: wanted,
            limit: MAX_NAME,
        }),
        Some((.., value)) => serde_json::from_str(value).map_err(|_| DecodeError::NotAString {
            key: wanted,
            found: kind(value),
        }),
    };
    let (schema, package, name) = (text("schema")?, text("package")?, text("name")?);
    let size: usize = fields
        .iter()
        .map(|(key, value)| key.len() + value.len() + 4)
        .sum();
    let mut blob = String::with_capacity(size + 3);
    blob.push('{');
    for (at, (key, value)) in fields.iter().enumerate() {
        if at > 0 {
            blob.push(',');
        }
        string(key, &mut blob);
        blob.push(':');
        blob.push_str(value);
    }
    blob.push_str("}\n");
    Ok(Meta {
        schema,
        package,
        name,
        blob: blob.into_bytes(),
    })
}

/// Returns true if a field of this key tells to which package an object belongs.
pub(crate) fn tells_owner(key: &str) -> bool {
    // Folding keeps the number of characters, so a longer key is none of them.
    key.chars().count() <= "package".len() && ["schema", "package", "name"].contains(&fold(key).as_ref())
}

/// Folds case simply, as Go compares the keys of JSON objects.
fn fold(key: &str) -> Cow<'_, str> {
    if !key.is_ascii() {
        return Cow::Owned(fold_unicode(key));
    }
    if key.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Owned(key.to_ascii_lowercase());
    }
    Cow::Borrowed(key)
}

fn fold_unicode(key: &str) -> String {
    key.chars()
        .map(|c| {
            single(
                single(c, c.to_uppercase()),
                single(c, c.to_uppercase()).to_lowercase(),
            )
        })
        .collect()
}

/// Returns the single character of `mapped`, or `c` if there are several.
fn single(c: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

/// Returns the name of the JSON type of a canonical text.
fn kind(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'n') => "null",
        Some(b't' | b'f') => "a boolean",
        Some(b'"') => "a string",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        _ => "a number",
    }
}

/// Writes a value; its depth was limited when it was parsed.
pub(crate) fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => number(value, out),
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => object(fields, out),
    }
}

fn object(fields: &Map<String, Value>, out: &mut String) {
    out.push('{');
    for (at, (key, value)) in fields.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        string(key, out);
        out.push(':');
        write(value, out);
    }
    out.push('}');
}

/// Writes a number: integers with all their digits, others with the fewest digits that parse to the same value, in
/// exponent form from 1e21 on and below 1e-6.
pub(crate) fn number(value: &Number, out: &mut String) {
    if value.is_u64() || value.is_i64() {
        let _ = write!(out, "{value}");
        return;
    }
    let float = value.as_f64().unwrap_or_default();
    let size = float.abs();
    if float == 0.0 || (1e-6..1e21).contains(&size) {
        let _ = write!(out, "{float}");
        return;
    }
    let text = format!("{float:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => {
            let _ = write!(out, "{digits}e+{exponent}");
        }
        _ => out.push_str(&text),
    }
}

/// Writes a string.
pub(crate) fn string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = first_escape(rest.as_bytes()) {
        let (plain, from) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = from.chars();
        let c = chars.next().unwrap_or_default();
        rest = chars.as_str();
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..'\u{20}' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push_str(rest);
    out.push('"');
}

/// Returns the position of the first character that may need an escape; U+2028 and U+2029 start with 0xe2. Compares eight bytes
/// at a time: in the JSON texts that catalogs quote, an escape follows every twenty bytes or so; icons have none.
pub(crate) fn first_escape(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = less(word, 0x20) | equal(word, b'"') | equal(word, b'\\') | equal(word, 0xe2);
        if found != 0 {
            return Some(at * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let needs = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\' | 0xe2);
    Some(words.len() * 8 + rest.iter().position(needs)?)
}

const EACH_BYTE: u64 = u64::from_ne_bytes([1; 8]);

/// Marks the bytes of `word` that are less than `limit` (at most 0x80) with their highest bit. Only the lowest mark is
/// reliable, because of the borrow.
fn less(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(EACH_BYTE * u64::from(limit)) & !word & (EACH_BYTE << 7)
}

/// Marks the bytes of `word` that equal `byte`, like [`less`].
fn equal(word: u64, byte: u8) -> u64 {
    less(word ^ (EACH_BYTE * u64::from(byte)), 1)
}

#[cfg(test)]
mod tests {
    use super::{Fields, fold, fold_unicode, meta, string};

    #[test]
    fn an_error_shows_a_few_keys_and_cuts_them() {
        let mut fields = Fields::default();
        let end = "x".repeat(5000);
        for number in 0..1024_u32 {
            let cased = |bit: u32| if number >> bit & 1 == 0 { 'a' } else { 'A' };
            let key: String = (0..10).map(cased).collect();
            fields.buffer().push('1');
            fields.add(key + &end).unwrap();
        }
        let error = meta(&fields).unwrap_err().to_string();
        assert!(error.len() < 3000 && error.ends_with(" …]"), "{error}");
    }

    #[test]
    fn ascii_is_folded_like_other_text() {
        for byte in 0..0x80_u8 {
            let key = char::from(byte).to_string();
            assert_eq!(fold(&key), fold_unicode(&key));
        }
    }

    /// Tests every escaped character at every position of a word, beside every other character.
    #[test]
    fn every_escape_is_found_wherever_it_stands() {
        let special: Vec<char> = (0..0x20_u8)
            .map(char::from)
            .chain([
                '"',
                '\\',
                ' ',
                '!',
                '\u{7f}',
                '\u{80}',
                '\u{2028}',
                '\u{2029}',
                '\u{20ac}',
                '\u{1f600}',
            ])
            .collect();
        for first in &special {
            for second in &special {
                for before in 0..18 {
                    let text = format!("{}{first}{second}{first}abcdefghij", "x".repeat(before));
                    let mut out = String::new();
                    string(&text, &mut out);
                    assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
                    assert!(!out.contains(['\u{2028}', '\u{2029}']), "{out}");
                }
            }
        }
    }
}
