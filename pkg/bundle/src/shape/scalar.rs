//! Conversion of scalars, with the errors of Go's converters.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Number, Value};

use super::Shape;
use crate::quantity;

/// Converts `value` to the scalar `shape`.
pub(super) fn convert(shape: &Shape, value: &Value) -> Result<Value, String> {
    match (shape, value) {
        (Shape::Str, Value::String(_)) | (Shape::Bool, Value::Bool(_)) => Ok(value.clone()),
        (Shape::Str | Shape::Bytes, Value::Null) => Ok("".into()),
        (Shape::Bool, Value::Null) => Ok(false.into()),
        (Shape::Int | Shape::Int64 | Shape::Float | Shape::IntOrString, Value::Null) => Ok(0.into()),
        (Shape::Float, Value::Number(number)) => Ok(float(number)),
        (Shape::Int | Shape::Int64, Value::Number(_)) => integer(value).map(Value::from).ok_or_else(|| {
            let width = if *shape == Shape::Int { 32 } else { 64 };
            format!("cannot convert float64 to int{width}")
        }),
        (Shape::Quantity, _) => quantity::canonical(value)
            .map(Value::String)
            .map_err(ToOwned::to_owned),
        (Shape::IntOrString, _) => int_or_string(value),
        (Shape::Time, _) => time(value),
        (Shape::Bytes, Value::String(text)) => bytes(text).map(Value::String),
        (Shape::Bytes, _) => Err(format!("cannot restore slice from {}", go_kind(value))),
        // Go converts integers to text as characters; this case has its own error.
        (Shape::Str, Value::Number(number)) if !number.is_f64() => {
            Err("cannot convert int64 to string".to_owned())
        }
        (Shape::Str, _) => Err("unrecognized type: string".to_owned()),
        (Shape::Bool, _) => Err("unrecognized type: bool".to_owned()),
        (Shape::Int, _) => Err("unrecognized type: int32".to_owned()),
        (Shape::Int64, _) => Err("unrecognized type: int64".to_owned()),
        (Shape::Float, _) => Err("unrecognized type: float64".to_owned()),
        _ => Ok(value.clone()),
    }
}

/// Returns the integer value of `value`, also if it is written as a float.
pub(crate) fn integer(value: &Value) -> Option<i64> {
    let whole = |number: f64| (number.fract() == 0.0).then(|| number.to_string())?.parse().ok();
    value.as_i64().or_else(|| value.as_f64().and_then(whole))
}

fn int_or_string(value: &Value) -> Result<Value, String> {
    let held = match value {
        Value::String(_) => return Ok(value.clone()),
        Value::Number(number) => match integer(value).filter(|whole| i32::try_from(*whole).is_ok()) {
            Some(whole) => return Ok(whole.into()),
            None => format!("number {number}"),
        },
        _ => json_kind(value).to_owned(),
    };
    Err(format!(
        "json: cannot unmarshal {held} into Go value of type int32"
    ))
}

/// Converts a time to UTC and whole seconds; null stays.
fn time(value: &Value) -> Result<Value, String> {
    match value {
        Value::Null => Ok(Value::Null),
        Value::String(text) => {
            let timestamp: Timestamp = text.parse().map_err(|_| {
                format!("parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse it")
            })?;
            Ok(timestamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into())
        }
        _ => Err(format!(
            "json: cannot unmarshal {} into Go value of type string",
            json_kind(value)
        )),
    }
}

/// Normalises base64; line ends are ignored.
fn bytes(text: &str) -> Result<String, String> {
    let bare: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let decoded = STANDARD.decode(bare).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
            base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len(),
        };
        format!("error decoding from json: illegal base64 data at input byte {at}")
    })?;
    Ok(STANDARD.encode(decoded))
}

/// Rounds a number to a 64-bit float, like the API.
fn float(number: &Number) -> Value {
    let rounded = number
        .as_f64()
        .filter(|float| float.fract() == 0.0)
        .map(|float| float.to_string());
    let whole = rounded.and_then(|text| {
        text.parse::<i64>()
            .map(Number::from)
            .or_else(|_| text.parse::<u64>().map(Number::from))
            .ok()
    });
    Value::Number(whole.unwrap_or_else(|| number.clone()))
}

/// Returns the kind of a decoded JSON value in the words of upstream's converter.
pub(crate) fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

/// Returns the kind of a JSON value in the words of Go's JSON decoder.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
