//! Access to objects.

use serde_json::{Map, Value};

/// Returns a text below `object` by a JSON pointer; empty if it is absent.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns the elements of a list below `object`.
pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Returns the metadata for changes; creates them if they are absent.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    child(object, "metadata")
}

/// Returns a field that is an object for changes; creates the field if it is no object.
pub(crate) fn child<'a>(object: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    let map = as_map(object);
    as_map(map.entry(name).or_insert(Value::Null))
}

/// Makes `value` an object if it is none.
pub(crate) fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("the value was made an object"),
    }
}

/// Returns the finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    let all = items(object, "/metadata/finalizers");
    all.iter().filter_map(Value::as_str).collect()
}

/// Returns true if the object is being deleted.
pub(crate) fn is_deleting(object: &Value) -> bool {
    object
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(|at| !at.is_null())
}
