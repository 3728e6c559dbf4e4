//! Uniqueness of list elements, and of the keys of lists that are maps.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::node::{ListType, Node};
use super::quoted::quoted;
use super::{Findings, PathSegment};

/// Checks all lists in `value`.
pub(super) fn check(node: &Node, value: &Value, out: &mut Findings) {
    if !node.has_lists {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let Some(known) = node.field(name) else { continue };
                let step = if node.properties.contains_key(name) {
                    PathSegment::Field(name)
                } else {
                    PathSegment::Key(name)
                };
                out.within(&step, |out| check(known, value, out));
            }
        }
        Value::Array(items) => {
            match &node.list {
                ListType::Atomic => {}
                ListType::Set => duplicates(items.iter().cloned(), out),
                ListType::Map(keys) if items.iter().any(|item| !item.is_object() && !item.is_null()) => {
                    out.fault(format!(
                        "has an item that is not an object with the keys {}",
                        keys.join(", ")
                    ));
                }
                ListType::Map(keys) => duplicates(items.iter().map(|item| key(item, keys)), out),
            }
            if let Some(known) = &node.items {
                for (at, item) in items.iter().enumerate() {
                    out.within(&PathSegment::Index(at), |out| check(known, item, out));
                }
            }
        }
        _ => {}
    }
}

fn key(item: &Value, keys: &[String]) -> Value {
    let fields = keys
        .iter()
        .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn duplicates(items: impl Iterator<Item = Value>, out: &mut Findings) {
    let mut seen = HashSet::new();
    let mut reported = HashSet::new();
    for (at, item) in items.enumerate() {
        // Object keys are sorted, so that equal values have equal texts.
        let text = item.to_string();
        if !seen.insert(text.clone()) && reported.insert(text) {
            let step = PathSegment::Index(at);
            out.within(&step, |out| {
                out.fault(format!("duplicate value {}", quoted(&item)));
            });
        }
    }
}

/// Returns the index of the first repeated element.
pub(super) fn first_duplicate(items: &[Value]) -> Option<usize> {
    let mut seen = HashSet::new();
    items.iter().position(|item| !seen.insert(item.to_string()))
}
