//! Lists as sets and maps: no element, or key, may stand twice.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::node::{List, Node};
use super::quoted::quoted;
use super::{Findings, Step};

/// Checks all lists of `value`.
pub(super) fn check(node: &Node, value: &Value, out: &mut Findings) {
    if !node.has_lists {
        return;
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let Some(known) = node.field(name) else { continue };
                let step = if node.properties.contains_key(name) {
                    Step::Field(name)
                } else {
                    Step::Key(name)
                };
                out.within(&step, |out| check(known, value, out));
            }
        }
        Value::Array(items) => {
            match &node.list {
                List::Atomic => {}
                List::Set => repeated(items.iter().cloned(), out),
                List::Map(keys) if items.iter().any(|item| !item.is_object() && !item.is_null()) => {
                    out.fault(format!("holds what has no keys {}", keys.join(", ")));
                }
                List::Map(keys) => repeated(items.iter().map(|item| key(item, keys)), out),
            }
            if let Some(known) = &node.items {
                for (at, item) in items.iter().enumerate() {
                    out.within(&Step::Index(at), |out| check(known, item, out));
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

fn repeated(items: impl Iterator<Item = Value>, out: &mut Findings) {
    let mut seen = HashSet::new();
    let mut told = HashSet::new();
    for (at, item) in items.enumerate() {
        // Object keys are sorted, so that equal values have equal texts.
        let text = item.to_string();
        if !seen.insert(text.clone()) && told.insert(text) {
            let step = Step::Index(at);
            out.within(&step, |out| {
                out.fault(format!("{} stands there twice", quoted(&item)));
            });
        }
    }
}

/// The first element that stands there already.
pub(super) fn first_repeated(items: &[Value]) -> Option<usize> {
    let mut seen = HashSet::new();
    items.iter().position(|item| !seen.insert(item.to_string()))
}
