//! Merging an applied configuration into an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::item;
use super::{Identity, ListType, Shape, Type};

/// Returns `live` with the values of `applied` merged into it.
///
/// # Errors
/// A list of a map or set has an element without key.
pub(crate) fn merge(live: &Value, applied: &Value, of: &Type) -> Result<Value, String> {
    match of.shape(applied) {
        Shape::List(list) if !matches!(list.identity, Identity::Atomic) => {
            let (left, right) = (elements(live), elements(applied));
            if left.is_empty() && right.is_empty() {
                return Ok(applied.clone());
            }
            items(left, right, list).map(Value::Array)
        }
        Shape::Map(map) if !map.atomic => {
            let none = Map::new();
            let left = live.as_object().unwrap_or(&none);
            let right = applied.as_object().unwrap_or(&none);
            if left.is_empty() && right.is_empty() {
                return Ok(applied.clone());
            }
            let mut out = left.clone();
            for (name, value) in right {
                let of = map.field(name).unwrap_or(&Type::Any);
                let merged = match left.get(name) {
                    Some(live) => merge(live, value, of)?,
                    None => value.clone(),
                };
                out.insert(name.clone(), merged);
            }
            Ok(Value::Object(out))
        }
        _ => Ok(applied.clone()),
    }
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Merges lists with keys. Elements of the configuration keep their order; elements that only the object has keep
/// their place among those that both have.
fn items(left: &[Value], right: &[Value], list: &ListType) -> Result<Vec<Value>, String> {
    let keys = |values: &[Value]| {
        values
            .iter()
            .map(|value| item(list, value))
            .collect::<Result<Vec<_>, _>>()
    };
    let (left_keys, right_keys) = (keys(left)?, keys(right)?);
    let mut live: BTreeMap<&String, &Value> = BTreeMap::new();
    for (key, value) in left_keys.iter().zip(left) {
        // An element that the object has twice is replaced, not merged.
        live.entry(key)
            .and_modify(|twice| *twice = &Value::Null)
            .or_insert(value);
    }
    let applied: BTreeSet<&String> = right_keys.iter().collect();
    let mut shared = right_keys.iter().filter(|key| live.contains_key(key)).peekable();
    let mut done: BTreeSet<&String> = BTreeSet::new();
    let (mut l, mut r) = (0, 0);
    let mut out = Vec::new();
    while l < left.len() || r < right.len() {
        if let Some(key) = left_keys.get(l) {
            let same = right_keys.get(r) == Some(key);
            let later = !same && r < right.len() && shared.peek().is_some_and(|next| *next != key);
            if !applied.contains(key) {
                out.push(left[l].clone());
                l += 1;
                continue;
            }
            if later {
                l += 1;
                continue;
            }
            if same || done.contains(key) {
                l += 1;
            }
        }
        if let Some(key) = right_keys.get(r) {
            done.insert(key);
            out.push(match live.get(key) {
                Some(live) => merge(live, &right[r], &list.element)?,
                None => right[r].clone(),
            });
            shared.next_if(|next| *next == key);
            r += 1;
        }
    }
    Ok(out)
}
