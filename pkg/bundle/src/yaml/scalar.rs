//! What a plain YAML scalar means in YAML 1.1, as Kubernetes' tools read it.

use serde_json::{Number, Value};

/// The value of a scalar; `plain` scalars without a tag are guessed, all others are text.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Value {
    let short = tag.map(|tag| {
        tag.trim_start_matches("!!")
            .trim_start_matches("tag:yaml.org,2002:")
    });
    match short {
        None if plain => guess(text),
        Some("int" | "float" | "bool" | "null") => guess(text),
        _ => Value::String(text.to_owned()),
    }
}

fn guess(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Value::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) || text.len() > 400 {
        return None;
    }
    let plain = text.replace('_', "");
    let (negative, digits) = match plain.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    if let Some(number) = integer(negative, digits) {
        return Some(number);
    }
    if is_decimal(digits) {
        float(plain.parse().ok()?)
    } else {
        None
    }
}

fn integer(negative: bool, digits: &str) -> Option<Number> {
    let lower = digits.to_ascii_lowercase();
    let (radix, body) = if let Some(hex) = lower.strip_prefix("0x") {
        (16, hex)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        (2, binary)
    } else if let Some(octal) = lower.strip_prefix("0o") {
        (8, octal)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, lower.get(1..)?)
    } else {
        (10, lower.as_str())
    };
    if body.is_empty() || body.starts_with(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(body, radix).ok()?;
    let value = if negative { -value } else { value };
    if let Ok(small) = i64::try_from(value) {
        return Some(small.into());
    }
    u64::try_from(value).ok().map(Number::from)
}

/// Digits, at most one point, an optional exponent; nothing else that `f64` would parse.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (text.get(..at).unwrap_or(""), text.get(at + 1..)),
        None => (text, None),
    };
    let digits = mantissa.chars().filter(char::is_ascii_digit).count();
    let points = mantissa.chars().filter(|c| *c == '.').count();
    let exponent_fits = exponent.is_none_or(|exponent| {
        let body = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !body.is_empty() && body.chars().all(|c| c.is_ascii_digit())
    });
    digits > 0 && points <= 1 && digits + points == mantissa.chars().count() && exponent_fits
}

/// JSON has no difference between `1.0` and `1`, and manifests are compared as JSON.
pub(crate) fn float(value: f64) -> Option<Number> {
    if value.fract() == 0.0 && value.abs() < 9.0e15 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "integral and below 2^53, checked above"
        )]
        return Some((value as i64).into());
    }
    Number::from_f64(value)
}
