//! Differences of two values as sets of fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::element::{field, item};
use super::{Identity, Set, Shape, Type};

/// Differences between two values.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub removed: Set,
    pub modified: Set,
    pub added: Set,
}

/// Compares two values of one type.
pub(crate) fn compare(before: &Value, after: &Value, of: &Type) -> Comparison {
    let mut out = Comparison::default();
    walk(Some(before), Some(after), of, &mut Vec::new(), &mut out);
    out
}

fn walk(
    before: Option<&Value>,
    after: Option<&Value>,
    of: &Type,
    path: &mut Vec<String>,
    out: &mut Comparison,
) {
    let Some(sample) = after.or(before) else { return };
    let leaf = match (before, after) {
        // A value that changes its form is compared in both forms.
        (Some(before), Some(after)) if of.form(before) != of.form(after) => {
            inner(&of.shape(before), Some(before), Some(after), path, out);
            inner(&of.shape(after), Some(before), Some(after), path, out)
        }
        _ => inner(&of.shape(sample), before, after, path, out),
    };
    if !leaf {
        if before.is_none() {
            out.added.insert(path);
        } else if after.is_none() {
            out.removed.insert(path);
        }
    }
}

/// Compares below a value; returns true if the value is a leaf. A value of another form has nothing below it.
fn inner(
    shape: &Shape<'_>,
    before: Option<&Value>,
    after: Option<&Value>,
    path: &mut Vec<String>,
    out: &mut Comparison,
) -> bool {
    match shape {
        Shape::List(list) if !matches!(list.identity, Identity::Atomic) => {
            let items = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
            let (left, right) = (items(before), items(after));
            if left.is_empty() && right.is_empty() {
                leaf(before, after, path, out);
                return true;
            }
            let mut both: BTreeMap<String, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
            for value in &left {
                if let Ok(key) = item(list, value) {
                    both.entry(key).or_default().0.push(value);
                }
            }
            for value in &right {
                if let Ok(key) = item(list, value) {
                    both.entry(key).or_default().1.push(value);
                }
            }
            for (key, (left, right)) in both {
                path.push(key);
                elements(&left, &right, &list.element, path, out);
                path.pop();
            }
            false
        }
        Shape::Map(map) if !map.atomic => {
            let none = Map::new();
            let left = before.and_then(Value::as_object).unwrap_or(&none);
            let right = after.and_then(Value::as_object).unwrap_or(&none);
            if left.is_empty() && right.is_empty() {
                leaf(before, after, path, out);
                return true;
            }
            for name in left.keys().chain(right.keys()).collect::<BTreeSet<_>>() {
                path.push(field(name));
                let of = map.field(name).unwrap_or(&Type::Any);
                walk(left.get(name), right.get(name), of, path, out);
                path.pop();
            }
            false
        }
        _ => {
            leaf(before, after, path, out);
            true
        }
    }
}

/// Compares the elements of one key; more than one are a value of their own.
fn elements(before: &[&Value], after: &[&Value], of: &Type, path: &mut Vec<String>, out: &mut Comparison) {
    match (before, after) {
        ([_, _, ..], [_, _, ..]) => {
            if before != after {
                out.modified.insert(path);
            }
        }
        ([_, _, ..], _) => {
            walk(None, after.first().copied(), of, path, out);
            out.removed.insert(path);
        }
        (_, [_, _, ..]) => {
            walk(before.first().copied(), None, of, path, out);
            out.added.insert(path);
        }
        _ => walk(before.first().copied(), after.first().copied(), of, path, out),
    }
}

fn leaf(before: Option<&Value>, after: Option<&Value>, path: &[String], out: &mut Comparison) {
    match (before, after) {
        (None, Some(_)) => out.added.insert(path),
        (Some(_), None) => out.removed.insert(path),
        (before, after) if before != after => out.modified.insert(path),
        _ => {}
    }
}
