//! Serialization of values by their texts.

use serde::Serializer;
use std::fmt::Display;

/// Serializes `value` as its text.
pub(crate) fn as_text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Serializes `value` as its text, or as null if there is none.
#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
pub(crate) fn as_optional_text<S: Serializer>(
    value: &Option<impl Display>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}
