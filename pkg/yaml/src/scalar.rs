//! Values of YAML scalars, by the rules of YAML 1.1 as Go's reader applies them.
//!
//! `yes` and `on` are true, `012` is ten, `1_000` is a thousand, and an unquoted date is a text.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use crate::{YamlError, timestamp};

/// Prefix of YAML's own tags.
const CORE: &str = "tag:yaml.org,2002:";

/// A scalar that may be a value or a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Integer(i64),
    /// An integer above the range of `i64`.
    Unsigned(u64),
    Float(f64),
    Text(String),
}

impl Scalar {
    /// Returns the JSON value; infinities and NaN have none.
    pub(crate) fn value(self) -> Result<Value, YamlError> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(value),
            Self::Integer(value) => value.into(),
            Self::Unsigned(value) => value.into(),
            Self::Float(value) => Value::Number(
                crate::float::json_number(value)
                    .ok_or_else(|| YamlError::problem(format!("{value} has no JSON form")))?,
            ),
            Self::Text(text) => Value::String(text),
        })
    }

    /// Returns the JSON key.
    pub(crate) fn key(self) -> Result<String, YamlError> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Bool(value) => Ok(value.to_string()),
            Self::Integer(value) => Ok(value.to_string()),
            Self::Float(value) => Ok(crate::float::key(value)),
            Self::Null => Err(YamlError::problem("unsupported map key of type: null")),
            Self::Unsigned(_) => Err(YamlError::problem("unsupported map key of type: uint64")),
        }
    }
}

/// Returns true if a scalar is a merge key.
pub(crate) fn is_merge(text: &str, implicit: bool, tag: Option<&str>) -> bool {
    text == "<<" && (implicit || tag.and_then(|tag| tag.strip_prefix(CORE)) == Some("merge"))
}

/// Resolves a scalar by its tag, or by its text if it is plain and has no tag.
pub(crate) fn resolve(text: String, implicit: bool, tag: Option<&str>) -> Result<Scalar, YamlError> {
    let Some(tag) = tag.filter(|tag| !tag.is_empty()) else {
        return Ok(if implicit { plain(text) } else { Scalar::Text(text) });
    };
    let short = tag.strip_prefix(CORE);
    if !matches!(short, Some("bool" | "int" | "float" | "null" | "timestamp")) {
        return match short {
            Some("binary") => binary(&text),
            // A text, or a custom tag, which Go's reader ignores.
            _ => Ok(Scalar::Text(text)),
        };
    }
    if short == Some("timestamp") && timestamp::is_timestamp(&text) {
        return Ok(Scalar::Text(text));
    }
    let shown = text.clone();
    match (short, plain(text)) {
        (Some("float"), Scalar::Integer(value)) =>
        {
            #[expect(clippy::cast_precision_loss, reason = "the tag asks for the nearest float")]
            Ok(Scalar::Float(value as f64))
        }
        (Some("bool"), value @ Scalar::Bool(_))
        | (Some("int"), value @ (Scalar::Integer(_) | Scalar::Unsigned(_)))
        | (Some("float"), value @ Scalar::Float(_))
        | (Some("null"), value @ Scalar::Null) => Ok(value),
        _ => Err(YamlError::problem(format!(
            "cannot decode `{shown}` as a !!{}",
            short.unwrap_or(tag)
        ))),
    }
}

/// Decodes base64 text; line breaks are ignored. Each invalid UTF-8 byte becomes U+FFFD.
fn binary(text: &str) -> Result<Scalar, YamlError> {
    let engine = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    let text: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let bytes = engine
        .decode(text)
        .map_err(|_| YamlError::problem("!!binary value contains invalid base64 data"))?;
    Ok(Scalar::Text(crate::json::lossy(&bytes).into_owned()))
}

/// Resolves a plain scalar by its text.
fn plain(text: String) -> Scalar {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Scalar::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => Scalar::Float(f64::NAN),
        _ => number(&text).unwrap_or(Scalar::Text(text)),
    }
}

fn number(text: &str) -> Option<Scalar> {
    let first = text.bytes().next()?;
    // Most texts are no numbers: the first byte says so before anything is copied.
    if !matches!(first, b'.' | b'+' | b'-' | b'0'..=b'9') {
        return None;
    }
    let plain = if text.contains('_') {
        Cow::Owned(text.replace('_', ""))
    } else {
        Cow::Borrowed(text)
    };
    if first == b'.' {
        return (underscores_separate_digits(text) && decimal(&plain)).then(|| float(&plain))?;
    }
    integer(&plain)
        .or_else(|| decimal(&plain).then(|| float(&plain))?)
        .or_else(|| binary_integer(&plain))
}

/// Returns true if every underscore is between two digits. Go's reader requires it only after a leading point.
fn underscores_separate_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let fits = |(at, byte): (usize, &u8)| *byte != b'_' || digit(at.checked_sub(1)) && digit(Some(at + 1));
    bytes.iter().enumerate().all(fits)
}

/// Reads an integer with an optional sign and prefix: `0x`, `0o`, `0b`, or a leading zero for octal.
fn integer(text: &str) -> Option<Scalar> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, unsigned.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, unsigned.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, unsigned.get(2..)?),
        [b'0', _, ..] => (8, unsigned.get(1..)?),
        _ => (10, unsigned),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    // Go's reader parses an integer that overflows as an unsigned one, which has no sign.
    match i64::try_from(if text.starts_with('-') { -value } else { value }) {
        Ok(value) => Some(Scalar::Integer(value)),
        Err(_) if text.starts_with(['+', '-']) => None,
        Err(_) => u64::try_from(value).ok().map(Scalar::Unsigned),
    }
}

/// Reads `0b` with a sign after the prefix, a form that only Go's reader accepts.
fn binary_integer(text: &str) -> Option<Scalar> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest.strip_prefix("0b")?),
        None => (false, text.strip_prefix("0b")?),
    };
    if negative && digits.starts_with(['+', '-']) {
        return None;
    }
    let value = i64::from_str_radix(digits, 2).ok()?;
    Some(Scalar::Integer(if negative { -value } else { value }))
}

/// Returns true if a text has digits with at most one point, and an optional exponent.
fn decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    !(whole.is_empty() && fraction.is_empty()) && all_digits(whole) && all_digits(fraction) && exponent_fits
}

/// Returns the nearest float; none if the text is out of range.
fn float(text: &str) -> Option<Scalar> {
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Scalar::Float(value))
}
