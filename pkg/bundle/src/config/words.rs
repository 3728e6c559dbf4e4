//! Upstream's words in findings about types.

use serde_json::Value;

/// Returns the finding about a field of a wrong type.
pub(super) fn invalid_type(field: &str, got: &str, want: &str) -> String {
    format!("invalid type for field \"{field}\": got {got}, want {want}")
}

/// Returns the name of a value's type in findings.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
