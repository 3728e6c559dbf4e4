//! Conditions of objects that are read as JSON: objects of other kinds, and objects that may not decode.

use serde_json::Value;

use super::Status;

/// Condition of an object that is read as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UntypedCondition<'a> {
    /// Type of the condition.
    pub type_: &'a str,
    /// Status of the condition.
    pub status: Option<Status>,
    /// Reason of the status.
    pub reason: Option<&'a str>,
    /// Human-readable message.
    pub message: Option<&'a str>,
    /// Generation of the object that the condition describes.
    pub observed_generation: Option<i64>,
}

impl UntypedCondition<'_> {
    /// Returns true if the condition is true.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == Some(Status::True)
    }
}

/// Returns the conditions of the status in the order of the object, except those without a type.
pub fn all(object: &Value) -> impl Iterator<Item = UntypedCondition<'_>> {
    all_at(object, "/status/conditions")
}

/// Returns the conditions of the list at `pointer` in its order, except those without a type.
pub fn all_at<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = UntypedCondition<'a>> {
    let conditions = object.pointer(pointer).and_then(Value::as_array);
    conditions.into_iter().flatten().filter_map(read)
}

fn read(condition: &Value) -> Option<UntypedCondition<'_>> {
    let text = |key: &str| condition.get(key).and_then(Value::as_str);
    Some(UntypedCondition {
        type_: text("type")?,
        status: text("status").map(Status::read),
        reason: text("reason"),
        message: text("message"),
        observed_generation: condition.get("observedGeneration").and_then(Value::as_i64),
    })
}

/// Returns the condition of this type.
pub fn find(object: &Value, type_: impl AsRef<str>) -> Option<UntypedCondition<'_>> {
    all(object).find(|condition| condition.type_ == type_.as_ref())
}

/// Returns true if the condition of this type exists and is true.
pub fn is_true(object: &Value, type_: impl AsRef<str>) -> bool {
    find(object, type_).is_some_and(|condition| condition.is_true())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn malformed_conditions_are_skipped() {
        let object = json!({"status": {"conditions": [
            7, {"status": "True"}, {"type": "A", "status": true}, {"type": "B", "status": "True", "message": "m"},
            {"type": "C", "status": "?"}]}});
        let types: Vec<&str> = all(&object).map(|condition| condition.type_).collect();
        assert_eq!(types, ["A", "B", "C"]);
        assert_eq!(find(&object, "A").unwrap().status, None);
        assert_eq!(find(&object, "B").unwrap().message, Some("m"));
        assert_eq!(find(&object, "C").unwrap().status, Some(Status::Unknown));
        assert!(is_true(&object, "B") && !is_true(&object, "A") && !is_true(&object, "D"));
        assert_eq!(all(&json!({"status": {"conditions": "x"}})).count(), 0);
    }
}
