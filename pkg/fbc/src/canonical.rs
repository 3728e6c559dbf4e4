//! The canonical form of a meta: the one in which it is stored, served and hashed.
//!
//! Keys are sorted bytewise at every level, there is no white space, the only characters escaped are those
//! that JSON demands and U+2028 and U+2029, and numbers are written as Go's encoder writes them. Integers of
//! up to 64 bits keep their digits.

use crate::Meta;
use crate::decode::DecodeError;
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Files `fields`, the top level of one object, under its schema, package and name.
pub(crate) fn meta(fields: Vec<(String, Value)>) -> Result<Meta, DecodeError> {
    let mut folded: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, _) in &fields {
        folded.entry(fold(key)).or_default().push(key.clone());
    }
    if let Some((key, mut keys)) = folded.into_iter().find(|(_, keys)| keys.len() > 1) {
        keys.sort();
        return Err(DecodeError::DuplicateKeys { key, keys });
    }
    let text = |wanted: &'static str| match fields.iter().find(|(key, _)| fold(key) == wanted) {
        None => Ok(String::new()),
        Some((_, Value::String(text))) => Ok(text.clone()),
        Some((_, other)) => Err(DecodeError::NotAString {
            key: wanted,
            found: kind(other),
        }),
    };
    let (schema, package, name) = (text("schema")?, text("package")?, text("name")?);
    let mut blob = String::new();
    object(&fields.into_iter().collect(), &mut blob);
    blob.push('\n');
    Ok(Meta {
        schema,
        package,
        name,
        blob: blob.into_bytes(),
    })
}

/// Simple case folding, as Go compares the keys of JSON objects.
fn fold(key: &str) -> String {
    key.chars()
        .map(|c| {
            single(
                single(c, c.to_uppercase()),
                single(c, c.to_uppercase()).to_lowercase(),
            )
        })
        .collect()
}

/// The one character of `mapped`, or `c` when there are several.
fn single(c: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ => c,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Writes `value`; its depth was limited when it was read.
fn write(value: &Value, out: &mut String) {
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

/// Writes a number: integers by their digits, others with the fewest digits that read back, in exponent
/// form from 1e21 on and below 1e-6.
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

fn string(text: &str, out: &mut String) {
    out.push('"');
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let short = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\u{2028}' => "\\u2028",
            '\u{2029}' => "\\u2029",
            '\0'..'\u{20}' => "",
            _ => continue,
        };
        out.push_str(text.get(start..at).unwrap_or_default());
        if short.is_empty() {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push_str(short);
        }
        start = at + c.len_utf8();
    }
    out.push_str(text.get(start..).unwrap_or_default());
    out.push('"');
}
