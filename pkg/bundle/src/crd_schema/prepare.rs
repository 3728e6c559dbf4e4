//! Preparation of an object as in the API server: drops unknown fields and meaningless nulls, fills in defaults.

use serde_json::Value;

use super::node::{Additional, Node};
use super::{Findings, PathSegment};

/// Fields of every resource, which a schema may omit.
const RESOURCE: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// Cause of the loss of a field, as one phrase.
const LOST: &str = "the schema has no such field, so its value would be lost";

/// Prepares `object` and records every field that was dropped with its value in `lost`.
pub(super) fn prepare(object: &mut Value, root: &Node, lost: &mut Findings) {
    prune(object, Some(root), lost);
    drop_nulls(object, root);
    fill_defaults(object, root);
}

/// Drops fields that the schema does not know. Without a schema, drops all fields.
fn prune(value: &mut Value, node: Option<&Node>, lost: &mut Findings) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            lost.within(&PathSegment::Field(name), |lost| {
                let kept = node.is_some_and(|node| keeps(node, name, value, lost));
                // A null holds no value.
                if !kept && !value.is_null() {
                    lost.fault(LOST);
                }
                kept
            })
        }),
        Value::Array(items) => {
            let known = node.and_then(|node| node.items.as_deref());
            if known.is_none() && node.is_some_and(|node| node.keeps_unknown) {
                return;
            }
            for (at, item) in items.iter_mut().enumerate() {
                lost.within(&PathSegment::Index(at), |lost| prune(item, known, lost));
            }
        }
        _ => {}
    }
}

/// Returns true if an object of this schema keeps the field, and prunes the value of a field that it keeps.
fn keeps(node: &Node, name: &str, value: &mut Value, lost: &mut Findings) -> bool {
    if node.is_resource && RESOURCE.contains(&name) {
        return true;
    }
    match (node.properties.get(name), &node.additional) {
        (Some(known), _) => prune(value, Some(known), lost),
        (None, Additional::Schema(known)) => prune(value, Some(known), lost),
        _ if node.keeps_unknown => {}
        (None, Additional::Any) => prune(value, None, lost),
        (None, Additional::Unspecified | Additional::Forbidden) => return false,
    }
    true
}

/// Drops nulls of fields that are neither nullable nor have a default.
fn drop_nulls(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let Some(known) = node.field(name) else {
                return true;
            };
            if value.is_null() && !known.nullable && known.default.is_none() {
                return false;
            }
            drop_nulls(value, known);
            true
        }),
        Value::Array(items) => {
            if let Some(known) = &node.items {
                for item in items {
                    drop_nulls(item, known);
                }
            }
        }
        _ => {}
    }
}

/// Fills in defaults for absent fields and for nulls that are not allowed.
pub(super) fn fill_defaults(value: &mut Value, node: &Node) {
    let missing = |value: &Value, node: &Node| value.is_null() && !node.nullable;
    match value {
        Value::Object(map) => {
            for (name, known) in &node.properties {
                let Some(default) = &known.default else { continue };
                if map.get(name).is_none_or(|value| missing(value, known)) {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in map {
                let Some(known) = node.field(name) else { continue };
                if missing(value, known)
                    && let Some(default) = &known.default
                {
                    value.clone_from(default);
                }
                fill_defaults(value, known);
            }
        }
        Value::Array(items) => {
            let Some(known) = &node.items else { return };
            for item in items {
                if missing(item, known)
                    && let Some(default) = &known.default
                {
                    item.clone_from(default);
                }
                fill_defaults(item, known);
            }
        }
        _ => {}
    }
}
