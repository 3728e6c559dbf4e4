//! Numbers as the API server reads them: 64-bit signed integers, and floats for all others.

use std::cmp::Ordering;

use serde_json::Number as JsonNumber;

/// Minimum or maximum of a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub value: f64,
    pub exclusive: bool,
}

/// A JSON number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    pub(super) fn of(number: &JsonNumber) -> Self {
        match number.as_i64() {
            Some(integer) => Self::Integer(integer),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "bounds are floats in schemas")]
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Integer(whole) => whole as f64,
            Self::Float(float) => float,
        }
    }

    /// Returns true if the number counts as an integer: 2.0 does, and so does a number that is off only by rounding.
    pub(super) fn is_integer(self) -> bool {
        match self {
            Self::Integer(_) => true,
            Self::Float(float) => is_integral(float),
        }
    }

    /// Returns true if the number is below `bound`, or above it with `above`; the bound itself counts only if it is
    /// exclusive. For whole numbers a bound counts without its fraction.
    pub(super) fn is_beyond(self, bound: Bound, above: bool) -> bool {
        let (value, limit) = match self {
            Self::Integer(_) => (self.float(), bound.value.trunc()),
            Self::Float(float) => (float, bound.value),
        };
        let ordering = match (self, to_whole(limit)) {
            // Digits beyond the precision of a float count.
            (Self::Integer(whole), Some(limit)) => Some(whole.cmp(&limit)),
            _ => value.partial_cmp(&limit),
        };
        match ordering {
            Some(Ordering::Less) => !above,
            Some(Ordering::Greater) => above,
            Some(Ordering::Equal) => bound.exclusive,
            None => true,
        }
    }

    pub(super) fn is_multiple_of(self, factor: f64) -> bool {
        if factor <= 0.0 {
            return false;
        }
        if let (Self::Integer(whole), Some(factor)) = (self, to_whole(factor)) {
            return whole.checked_rem(factor) == Some(0);
        }
        is_integral(if factor < 1.0 {
            1.0 / factor * self.float()
        } else {
            self.float() / factor
        })
    }
}

/// Largest integer such that it and its successor are exact as floats.
const SAFE: f64 = 9_007_199_254_740_991.0;

fn is_integral(float: f64) -> bool {
    let whole = float.trunc();
    let off = (float - whole).abs();
    float.abs() <= SAFE && (off == 0.0 || whole != 0.0 && off / (float.abs() + whole.abs()) < 1e-9)
}

#[expect(clippy::cast_possible_truncation, reason = "in range and without a fraction")]
fn to_whole(float: f64) -> Option<i64> {
    (float.fract() == 0.0 && float.abs() <= SAFE).then_some(float as i64)
}
