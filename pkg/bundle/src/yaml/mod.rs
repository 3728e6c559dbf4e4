//! YAML and JSON manifests → JSON values, by the YAML 1.1 rules that Kubernetes' own tools follow.
//!
//! `yes` and `on` are booleans, `012` is ten, an unquoted timestamp stays the text it is, a repeated
//! key is won by its last value, `<<` merges. Input is hostile: depth, nodes and the work that aliases
//! cause are bounded, and building uses no recursion.

mod scalar;

use std::collections::HashMap;

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};

/// Deepest nesting accepted; real manifests stay below forty.
const MAX_DEPTH: usize = 120;
/// Most nodes in one file, aliases counted as often as they are used.
const MAX_NODES: usize = 4_000_000;

/// All documents of `text` that hold something, in their order. The error is in the words of the
/// library that upstream uses, where one of its common messages fits.
pub(crate) fn documents(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some(values) = json(text) {
        return Ok(values);
    }
    if text.chars().any(is_refused_control) {
        return Err("yaml: control characters are not allowed".to_owned());
    }
    let mut builder = Builder::default();
    for item in Parser::new_from_str(text) {
        let (event, span) = item.map_err(|error| scan_error(&error, builder.open.last()))?;
        builder.event(event, span.start.line())?;
    }
    Ok(builder.documents)
}

/// A single document; an empty text is null.
pub(crate) fn document(bytes: &[u8]) -> Result<Value, String> {
    Ok(documents(bytes)?.into_iter().next().unwrap_or(Value::Null))
}

/// JSON is tried first where the text looks like it: it is much faster and keeps numbers exact.
fn json(text: &str) -> Option<Vec<Value>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    serde_json::Deserializer::from_str(text).into_iter::<Value>().collect::<Result<_, _>>().ok()
}

fn is_refused_control(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// The parser's complaint, in the words of the reader clients know where there is a counterpart.
fn scan_error(error: &ScanError, open: Option<&Open>) -> String {
    let line = error.marker().line().saturating_sub(1).max(1);
    let text = error.to_string();
    let known = match (error.kind(), open) {
        (
            ErrorKind::ExpectedFlowSequenceSeparator | ErrorKind::UnexpectedEofFlowSequence,
            _,
        ) => "did not find expected ',' or ']'",
        _ if text.starts_with("illegal placement of ':'") && matches!(open, Some(Open::List { .. })) => {
            "did not find expected ',' or ']'"
        }
        _ => text.as_str(),
    };
    format!("yaml: line {line}: {known}")
}

/// A collection that is not complete yet.
enum Open {
    List { items: Vec<Value>, anchor: usize, nodes: usize },
    Map { entries: Map<String, Value>, merged: Map<String, Value>, key: Option<Key>, anchor: usize, nodes: usize },
}

enum Key {
    Text(String),
    Merge,
}

#[derive(Default)]
struct Builder {
    documents: Vec<Value>,
    open: Vec<Open>,
    anchors: HashMap<usize, (Value, usize)>,
    nodes: usize,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, line: usize) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) => self.anchors.clear(),
            Event::Alias(id) => {
                let (value, nodes) = self
                    .anchors
                    .get(&id)
                    .cloned()
                    .ok_or_else(|| format!("yaml: line {line}: anchor contains itself or is unknown"))?;
                self.count(nodes)?;
                self.place(Node::Value(value), nodes, line)?;
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.count(1)?;
                let tag = tag.as_deref().map(Tag::to_string);
                let plain = style == ScalarStyle::Plain;
                if plain && tag.is_none() && text == "<<" && self.wants_key() {
                    return self.place(Node::Merge, 1, line);
                }
                let value = scalar::resolve(&text, plain, tag.as_deref());
                if anchor > 0 {
                    self.anchors.insert(anchor, (value.clone(), 1));
                }
                self.place(Node::Value(value), 1, line)?;
            }
            Event::SequenceStart(_, anchor, _) => {
                self.count(1)?;
                self.push(Open::List { items: Vec::new(), anchor, nodes: 1 })?;
            }
            Event::MappingStart(_, anchor, _) => {
                self.count(1)?;
                let (entries, merged) = (Map::new(), Map::new());
                self.push(Open::Map { entries, merged, key: None, anchor, nodes: 1 })?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let (value, anchor, nodes) = match self.open.pop() {
                    Some(Open::List { items, anchor, nodes }) => (Value::Array(items), anchor, nodes),
                    Some(Open::Map { entries, mut merged, anchor, nodes, .. }) => {
                        // An explicit key beats a merged one, wherever it stands.
                        merged.extend(entries);
                        (Value::Object(merged), anchor, nodes)
                    }
                    None => return Err(format!("yaml: line {line}: unexpected end of a collection")),
                };
                if anchor > 0 {
                    self.anchors.insert(anchor, (value.clone(), nodes));
                }
                self.place(Node::Value(value), nodes, line)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, open: Open) -> Result<(), String> {
        if self.open.len() >= MAX_DEPTH {
            return Err("yaml: exceeded max depth".to_owned());
        }
        self.open.push(open);
        Ok(())
    }

    fn count(&mut self, nodes: usize) -> Result<(), String> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        Ok(())
    }

    fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { key: None, .. }))
    }

    fn place(&mut self, node: Node, cost: usize, line: usize) -> Result<(), String> {
        match (self.open.last_mut(), node) {
            (None, Node::Value(Value::Null) | Node::Merge) => {}
            (None, Node::Value(value)) => self.documents.push(value),
            (Some(Open::List { items, nodes, .. }), Node::Value(value)) => {
                items.push(value);
                *nodes = nodes.saturating_add(cost);
            }
            (Some(Open::List { items, .. }), Node::Merge) => items.push(Value::String("<<".to_owned())),
            (Some(Open::Map { key, entries, merged, nodes, .. }), node) => {
                *nodes = nodes.saturating_add(cost);
                match (key.take(), node) {
                    (None, Node::Merge) => *key = Some(Key::Merge),
                    (None, Node::Value(value)) => *key = Some(Key::Text(key_text(value, line)?)),
                    (Some(Key::Text(name)), Node::Value(value)) => {
                        entries.insert(name, value);
                    }
                    (Some(Key::Merge), Node::Value(value)) => merge(merged, value, line)?,
                    (Some(_), Node::Merge) => {
                        return Err(format!("yaml: line {line}: map merge requires map or sequence of maps as the value"));
                    }
                }
            }
        }
        Ok(())
    }
}

enum Node {
    Value(Value),
    Merge,
}

fn merge(into: &mut Map<String, Value>, value: Value, line: usize) -> Result<(), String> {
    let wrong = || format!("yaml: line {line}: map merge requires map or sequence of maps as the value");
    let maps = match value {
        Value::Object(map) => vec![map],
        Value::Array(items) => items
            .into_iter()
            .map(|item| match item {
                Value::Object(map) => Ok(map),
                _ => Err(wrong()),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(wrong()),
    };
    for map in maps {
        for (key, value) in map {
            into.entry(key).or_insert(value);
        }
    }
    Ok(())
}

/// JSON knows text keys only; other scalars become the text JSON would have for them.
fn key_text(value: Value, line: usize) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Bool(_) | Value::Number(_) => Ok(value.to_string()),
        Value::Null => Err(format!("yaml: line {line}: unsupported map key of type: null")),
        Value::Array(_) | Value::Object(_) => Err(format!("yaml: line {line}: invalid map key")),
    }
}

#[cfg(test)]
mod tests;
