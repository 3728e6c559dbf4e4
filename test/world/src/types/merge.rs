//! Merging an applied configuration into an object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::element::item;
use super::{Identity, ListType, Shape, Type};

/// Returns `live` with the values of `applied` merged into it.
///
/// # Errors
/// A list of a map or set has an element without key.
pub(crate) fn merge(live: &Value, applied: &Value, of: &Type) -> Result<Value, String> {
    match (of.shape(applied), live, applied) {
        (Shape::List(list), Value::Array(left), Value::Array(right))
            if !matches!(list.identity, Identity::Atomic) =>
        {
            items(left, right, list).map(Value::Array)
        }
        (Shape::Map(map), Value::Object(left), Value::Object(right)) if !map.atomic => {
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
    let live: BTreeMap<&String, &Value> = left_keys.iter().zip(left).collect();
    let applied: BTreeSet<&String> = right_keys.iter().collect();
    let mut shared = right_keys.iter().filter(|key| live.contains_key(key)).peekable();
    let mut done: BTreeSet<&String> = BTreeSet::new();
    let (mut l, mut r) = (0, 0);
    let mut out = Vec::new();
    while l < left.len() || r < right.len() {
        if l < left.len() {
            let key = &left_keys[l];
            let wanted = applied.contains(key);
            if r < right.len()
                && wanted
                && *key != right_keys[r]
                && shared.peek().is_some_and(|next| *next != key)
            {
                l += 1;
                continue;
            }
            if !wanted {
                out.push(left[l].clone());
                l += 1;
                continue;
            }
            if done.contains(key) {
                l += 1;
                continue;
            }
        }
        if r < right.len() {
            let key = &right_keys[r];
            done.insert(key);
            out.push(match live.get(key) {
                Some(live) => merge(live, &right[r], &list.element)?,
                None => right[r].clone(),
            });
            if shared.peek().is_some_and(|next| *next == key) {
                shared.next();
            }
            if l < left.len() && left_keys[l] == *key {
                l += 1;
            }
            r += 1;
        }
    }
    Ok(out)
}
