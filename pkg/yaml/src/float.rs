//! Floats as Go writes them.

use serde_json::Number;

/// Returns the JSON number of a float, or `None` for infinities and NaN.
///
/// Go writes `1.0` as `1`, which is read as an integer.
pub(crate) fn json_number(value: f64) -> Option<Number> {
    // Go uses an exponent from 1e21 on, so that an integer below that is written by its digits.
    if value.fract() == 0.0 && value.abs() < 1e21 && !(value == 0.0 && value.is_sign_negative()) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "integral and below 1e21, checked above"
        )]
        let whole = value as i128;
        if let Ok(small) = i64::try_from(whole) {
            return Some(small.into());
        }
        if let Ok(small) = u64::try_from(whole) {
            return Some(small.into());
        }
    }
    Number::from_f64(value)
}

/// Returns the text of a float as a key: the fewest digits that identify it among 32-bit floats, with an exponent
/// below 1e-4 and from 1e6 on, as Go's `%g` prints it.
pub(crate) fn key(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "Go rounds keys to 32 bits, too")]
    let value = value as f32;
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    // `1.5e-7` has the digits and the exponent that Go starts from.
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.unsigned_abs());
    }
    format!("{value}")
}
