//! Types of a schema.

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    pub(super) fn of(text: &str) -> Option<Self> {
        [
            Self::Object,
            Self::Array,
            Self::String,
            Self::Integer,
            Self::Number,
            Self::Boolean,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == text)
    }
}
