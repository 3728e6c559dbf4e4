//! Sizes of values, as upper bounds.

use serde_json::Value;

/// Weight of a value without its content, in bytes.
const VALUE: u64 = 64;

/// Upper bound for the size of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Bytes of all texts in the value, and 64 for each value and key in it.
    pub(super) weight: u64,
    /// Number of elements or entries, if it is a list or map.
    pub(super) length: u64,
    /// Length of the longest list or map in its elements, entries and below.
    pub(super) widest: u64,
}

impl Size {
    /// Size of a number, a boolean or null.
    pub(super) const SCALAR: Self = Self {
        weight: VALUE,
        length: 0,
        widest: 0,
    };

    /// Measures a JSON value.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        Measured::of(value).own
    }

    /// Measures a list of JSON values.
    #[must_use]
    pub fn of_list(items: &[Value]) -> Self {
        Self::list(items.iter().map(Self::of), items.len())
    }

    pub(super) fn text(length: usize) -> Self {
        Self {
            weight: VALUE.saturating_add(length as u64),
            ..Self::SCALAR
        }
    }

    /// Returns the size of a container of `length` elements or entries with these values and keys.
    pub(super) fn list(parts: impl Iterator<Item = Self>, length: usize) -> Self {
        let empty = Self {
            length: length as u64,
            ..Self::SCALAR
        };
        parts.fold(empty, |all, part| Self {
            weight: all.weight.saturating_add(part.weight),
            widest: all.widest.max(part.length).max(part.widest),
            ..all
        })
    }

    /// Returns the size of any element or entry.
    pub(super) fn part(self) -> Self {
        Self {
            length: self.widest,
            ..self
        }
    }

    /// Returns the size of either value.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            weight: self.weight.max(other.weight),
            length: self.length.max(other.length),
            widest: self.widest.max(other.widest),
        }
    }

    /// Returns the size of two texts or lists in a row.
    pub(super) fn joined(self, other: Self) -> Self {
        Self {
            weight: self.weight.saturating_add(other.weight),
            length: self.length.saturating_add(other.length),
            widest: self.widest.max(other.widest),
        }
    }

    /// Returns the size of `count` such texts or lists in a row.
    pub(super) fn times(self, count: u64) -> Self {
        Self {
            weight: self.weight.saturating_mul(count),
            length: self.length.saturating_mul(count),
            widest: self.widest,
        }
    }
}

/// Size of a JSON value and of what an expression can take from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// The whole value.
    pub(super) own: Size,
    /// The largest value that a loop visits: an element of a list, a key of a map.
    pub(super) visited: Size,
    /// The largest element of a list or value of a map.
    pub(super) held: Size,
    /// Number of elements or entries.
    pub(super) length: u64,
}

impl Measured {
    pub(super) fn of(value: &Value) -> Self {
        let largest = |sizes: &[Size]| sizes.iter().copied().fold(Size::SCALAR, Size::or);
        match value {
            Value::Array(items) => {
                let sizes: Vec<Size> = items.iter().map(Size::of).collect();
                Self {
                    own: Size::list(sizes.iter().copied(), items.len()),
                    visited: largest(&sizes),
                    held: largest(&sizes),
                    length: items.len() as u64,
                }
            }
            Value::Object(map) => {
                let sizes: Vec<Size> = map.values().map(Size::of).collect();
                let keys: Vec<Size> = map.keys().map(|key| Size::text(key.len())).collect();
                Self {
                    own: Size::list(sizes.iter().chain(&keys).copied(), map.len()),
                    visited: largest(&keys),
                    held: largest(&sizes),
                    length: map.len() as u64,
                }
            }
            scalar => {
                let own = match scalar {
                    Value::String(text) => Size::text(text.len()),
                    _ => Size::SCALAR,
                };
                Self {
                    own,
                    visited: Size::SCALAR,
                    held: Size::SCALAR,
                    length: 0,
                }
            }
        }
    }
}
