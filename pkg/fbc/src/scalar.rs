//! What a YAML scalar means, by the rules of YAML 1.1 as Kubernetes' reader applies them.
//!
//! `yes`, `on` and `y` are true, `0x1f` and `017` are numbers, `1_000` is a thousand. Dates stay strings as
//! written. Quoted scalars are strings, whatever they look like.

use crate::decode::DecodeError;
use granit_parser::{Event, ScalarStyle, Tag};
use serde_json::{Number, Value};

/// The value of a scalar.
pub(crate) fn resolve(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, DecodeError> {
    let string = || Ok(Value::String(text.to_owned()));
    let tag = tag.map(Tag::to_string);
    match tag
        .as_deref()
        .map(|tag| tag.rsplit(['!', ':']).next().unwrap_or_default())
    {
        None if style == ScalarStyle::Plain => plain(text),
        Some("int" | "float" | "bool" | "null") => plain(text),
        _ => string(),
    }
}

/// Whether `event` is the key that merges another mapping in.
pub(crate) fn is_merge(event: &Event<'_>) -> bool {
    matches!(event, Event::Scalar(text, ScalarStyle::Plain, _, _) if text == "<<")
}

fn plain(text: &str) -> Result<Value, DecodeError> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" | ".nan"
        | ".NaN" | ".NAN" => {
            return Err(DecodeError::Yaml {
                reason: format!("{text} has no JSON form"),
            });
        }
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    })
}

fn number(text: &str) -> Option<Number> {
    let first = text.bytes().next()?;
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return None;
    }
    let text = text.replace('_', "");
    integer(&text).or_else(|| float(&text))
}

/// Reads an integer with an optional sign and base prefix; a leading zero means octal.
fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // The standard reader would take a second sign.
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    if negative {
        i64::from_str_radix(&format!("-{digits}"), base)
            .ok()
            .map(Number::from)
    } else {
        u64::from_str_radix(digits, base).ok().map(Number::from)
    }
}

/// Reads a decimal number: digits with at most one point, then an optional exponent.
fn float(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let sound = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    let exponent_sound = exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)));
    if !sound || !exponent_sound {
        return None;
    }
    text.parse::<f64>().ok().and_then(Number::from_f64)
}
