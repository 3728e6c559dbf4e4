//! Checks of embedded resources: each names its own version and kind.

use serde_json::{Map, Value};

use super::node::Node;
use super::{Findings, PathSegment};

/// Checks all embedded resources of the resource `value`. The API server checks the version and kind of `value` itself.
pub(super) fn check(node: &Node, value: &Value, out: &mut Findings) {
    below(node, value, out);
}

fn walk(node: &Node, value: &Value, out: &mut Findings) {
    if let (true, Value::Object(map)) = (node.is_resource, value) {
        resource(map, out);
    }
    below(node, value, out);
}

fn below(node: &Node, value: &Value, out: &mut Findings) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let Some(known) = node.field(name).filter(|known| known.has_resources) else {
                    continue;
                };
                let step = if node.properties.contains_key(name) {
                    PathSegment::Field(name)
                } else {
                    PathSegment::Key(name)
                };
                out.within(&step, |out| walk(known, value, out));
            }
        }
        Value::Array(items) => {
            let Some(known) = node.items.as_deref().filter(|known| known.has_resources) else {
                return;
            };
            for (at, item) in items.iter().enumerate() {
                out.within(&PathSegment::Index(at), |out| walk(known, item, out));
            }
        }
        _ => {}
    }
}

fn resource(map: &Map<String, Value>, out: &mut Findings) {
    let mut word = |name: &str, fits: &dyn Fn(&str) -> bool| {
        out.within(&PathSegment::Field(name), |out| match map.get(name) {
            None => out.fault("is required"),
            Some(Value::String(text)) if fits(text) => {}
            Some(_) => out.fault("is not valid for a resource"),
        });
    };
    word("apiVersion", &|text| {
        !text.is_empty() && text.matches('/').count() <= 1
    });
    word("kind", &is_kind);
    if map.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
        out.within(&PathSegment::Field("metadata"), |out| {
            out.fault("is not an object");
        });
    }
}

fn is_kind(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.len() <= 63
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_word)
}
