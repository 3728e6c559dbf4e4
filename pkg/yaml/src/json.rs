//! JSON as Go's `encoding/json` reads it.

use std::borrow::Cow;

use serde_json::Value;

use crate::{Limits, YamlError, float};

/// Reads one JSON value. Of a key that stands twice the last value counts, bytes that are no UTF-8 and halves of
/// surrogate pairs become U+FFFD, and `1.0` is `1`.
///
/// # Errors
/// [`YamlError::Json`] for a text that is no JSON or holds a number that no 64-bit float can hold.
pub fn json(text: &[u8], limits: &Limits) -> Result<Value, YamlError> {
    let value =
        read_json(text, |text| serde_json::from_str(text)).map_err(|source| YamlError::Json { source })?;
    if depth_exceeds(&value, limits.depth()) {
        return Err(YamlError::TooDeep {
            limit: limits.depth(),
        });
    }
    Ok(whole_numbers(value))
}

/// Gives a JSON text to a reader in the form in which Go's reader would take it: bytes that are no UTF-8 and halves of
/// surrogate pairs are U+FFFD.
///
/// # Errors
/// Those of the reader.
pub fn read_json<T>(
    text: &[u8],
    mut read: impl FnMut(&str) -> Result<T, serde_json::Error>,
) -> Result<T, serde_json::Error> {
    let text = lossy(text);
    // Nearly all texts are right at once; only a wrong one is looked at a second time.
    read(&text).or_else(|error| match whole_surrogates(&text) {
        None => Err(error),
        Some(text) => read(&text),
    })
}

/// Returns a text in which each byte that is no UTF-8 is U+FFFD.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| '\u{fffd}'));
    }
    Cow::Owned(out)
}

/// Returns the text with an escaped U+FFFD in place of each escaped half of a surrogate pair, or `None` when there is
/// none.
fn whole_surrogates(text: &str) -> Option<String> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let (mut at, mut copied, mut found) = (0, 0, false);
    while let Some(next) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += next;
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                out.push_str(text.get(copied..at)?);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
                found = true;
            }
            // Any other escape, `\\` among them, has two characters that matter.
            _ => at += 2,
        }
    }
    out.push_str(text.get(copied..)?);
    found.then_some(out)
}

/// Turns floats that are whole into integers. The depth of the value is limited by the JSON reader.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            Value::Number(number.as_f64().and_then(float::json_number).unwrap_or(number))
        }
        Value::Array(items) => items.into_iter().map(whole_numbers).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, whole_numbers(value)))
            .collect(),
        other => other,
    }
}

/// Reports whether a value has more than `limit` levels.
fn depth_exceeds(value: &Value, limit: usize) -> bool {
    let deeper = |value: &Value| limit == 0 || depth_exceeds(value, limit - 1);
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(deeper),
        Value::Object(map) => limit == 0 || map.values().any(deeper),
        _ => false,
    }
}
