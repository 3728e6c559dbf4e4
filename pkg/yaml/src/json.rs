//! JSON as Go's `encoding/json` reads it.

use std::borrow::Cow;

use serde_json::Value;

use crate::budget::json_memory;
use crate::{Limits, YamlError, float};

/// Reads a JSON value. The last value of a repeated key is used. Invalid UTF-8 bytes and lone surrogates become U+FFFD,
/// and `1.0` becomes `1`.
///
/// # Errors
/// [`YamlError::Json`] if the text is not JSON or has a number outside of the range of 64-bit floats;
/// [`YamlError::TooCostly`] before a value is built.
pub fn json(text: &[u8], limits: &Limits) -> Result<Value, YamlError> {
    let text = lossy(text);
    if json_memory(&text) > limits.max_memory {
        let limit = limits.max_memory;
        return Err(YamlError::TooCostly { limit });
    }
    let mut value = read_json(text.as_bytes(), |text| serde_json::from_str(text))
        .map_err(|source| YamlError::Json { source })?;
    if depth_exceeds(&value, limits.depth()) {
        return Err(YamlError::TooDeep {
            limit: limits.depth(),
        });
    }
    whole_numbers(&mut value);
    Ok(value)
}

/// Passes a JSON text to `read` as Go's reader understands it: invalid UTF-8 bytes and lone surrogates are U+FFFD.
///
/// # Errors
/// Errors of `read`.
pub fn read_json<T>(
    text: &[u8],
    mut read: impl FnMut(&str) -> Result<T, serde_json::Error>,
) -> Result<T, serde_json::Error> {
    let text = lossy(text);
    // Nearly all texts are valid; only an invalid one is scanned for surrogates.
    read(&text).or_else(|error| match whole_surrogates(&text) {
        None => Err(error),
        Some(text) => read(&text),
    })
}

/// Decodes a text; each invalid byte becomes U+FFFD.
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

/// Replaces escaped lone surrogates with an escaped U+FFFD; `None` if there are none.
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
            // Any other escape, such as `\\`: skip two characters.
            _ => at += 2,
        }
    }
    out.push_str(text.get(copied..)?);
    found.then_some(out)
}

/// Converts integral floats to integers. The JSON parser limits the depth of the value.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = number.as_f64().and_then(float::json_number) {
                *number = whole;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Returns true if a value has more than `limit` levels.
fn depth_exceeds(value: &Value, limit: usize) -> bool {
    let deeper = |value: &Value| limit == 0 || depth_exceeds(value, limit - 1);
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(deeper),
        Value::Object(map) => limit == 0 || map.values().any(deeper),
        _ => false,
    }
}
