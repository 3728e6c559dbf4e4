//! Canonical form of resource quantities: `1024Mi` is `1Gi`, `0.5` is `500m`, `1e3` is `1k`.

use num_bigint::BigInt;
use serde_json::Value;

/// Upstream's error for an invalid quantity.
pub(crate) const FORMAT_ERROR: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Maximum length of a quantity; real ones have at most a few dozen characters.
const MAX_LENGTH: usize = 128;
/// Maximum decimal exponent.
const MAX_EXPONENT: i32 = 60;

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Binary,
    DecimalSuffix,
    DecimalExponent,
}

/// Returns the canonical text of a quantity given as text or number; null is zero.
pub(crate) fn canonical(value: &Value) -> Result<String, &'static str> {
    match value {
        Value::String(text) => canonical_text(text),
        Value::Number(number) => canonical_text(&number.to_string()),
        Value::Null => Ok("0".to_owned()),
        _ => Err(FORMAT_ERROR),
    }
}

fn canonical_text(text: &str) -> Result<String, &'static str> {
    let (nano, format) = parse(text).ok_or(FORMAT_ERROR)?;
    Ok(write(&nano, format))
}

/// Parses the value in units of 10^-9, rounded away from zero like in the API, and the format.
fn parse(text: &str) -> Option<(BigInt, Format)> {
    if text.is_empty() || text.len() > MAX_LENGTH || !text.is_ascii() {
        return None;
    }
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let (mantissa, suffix) = rest.split_at(end);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let (multiplier, exponent, format) = suffix_of(suffix)?;
    let digits: BigInt = format!("0{whole}{fraction}").parse().ok()?;
    let scale = 9 + exponent - i32::try_from(fraction.len()).ok()?;
    let scaled = digits * multiplier;
    let nano = if scale >= 0 {
        scaled * ten_to(scale)?
    } else {
        let divisor = ten_to(-scale)?;
        (scaled + &divisor - 1) / divisor
    };
    Some((if negative { -nano } else { nano }, format))
}

fn ten_to(exponent: i32) -> Option<BigInt> {
    Some(BigInt::from(10).pow(u32::try_from(exponent).ok()?))
}

fn suffix_of(suffix: &str) -> Option<(BigInt, i32, Format)> {
    let binary = |power: u32| Some((BigInt::from(1024).pow(power), 0, Format::Binary));
    let decimal = |exponent: i32| Some((BigInt::from(1), exponent, Format::DecimalSuffix));
    match suffix {
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        _ => {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (exponent.abs() <= MAX_EXPONENT).then(|| (BigInt::from(1), exponent, Format::DecimalExponent))
        }
    }
}

fn write(nano: &BigInt, format: Format) -> String {
    let zero = BigInt::from(0);
    if *nano == zero {
        return "0".to_owned();
    }
    let unit = BigInt::from(1_000_000_000);
    if format == Format::Binary && nano % &unit == zero {
        let whole = nano / &unit;
        let limit = BigInt::from(1024);
        // Below 1024 a binary quantity is written without suffix, like a decimal one.
        if whole >= limit || whole <= -limit {
            return reduce(whole, 1024, 0, &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]);
        }
    }
    let decimals = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    let exponents = ["e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18"];
    let suffixes = if format == Format::DecimalExponent {
        exponents
    } else {
        decimals
    };
    reduce(nano.clone(), 1000, 0, &suffixes)
}

fn reduce(mut number: BigInt, base: u32, mut step: usize, suffixes: &[&str]) -> String {
    let zero = BigInt::from(0);
    while step + 1 < suffixes.len() && &number % base == zero {
        number /= base;
        step += 1;
    }
    format!("{number}{}", suffixes.get(step).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        for (text, expected) in [
            ("1", "1"),
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1e3"),
            ("1000m", "1"),
            ("100Mi", "100Mi"),
            ("0", "0"),
            ("0.1Ki", "102400m"),
            ("512Ki", "512Ki"),
            ("-5", "-5"),
            ("1000000", "1M"),
        ] {
            assert_eq!(canonical_text(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["", "lots", "1..2", "1 Gi", ".", "1e", "1e999999999", "1Kii"] {
            assert_eq!(canonical_text(text), Err(FORMAT_ERROR), "{text}");
        }
    }
}
