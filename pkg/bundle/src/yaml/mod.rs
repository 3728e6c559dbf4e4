//! YAML and JSON manifests → JSON values, by the YAML 1.1 rules that Kubernetes' own tools follow.
//!
//! `yes` and `on` are booleans, `012` is ten, an unquoted timestamp stays the text it is, a repeated
//! key is won by its last value, `<<` merges. Input is hostile: depth and memory, aliases included, are
//! bounded, and building uses no recursion.

mod scalar;

use std::collections::HashMap;

use serde_json::{Map, Value};
use serde_saphyr::granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Tag};

/// Deepest nesting accepted; real manifests stay below forty.
const MAX_DEPTH: usize = 120;
/// Most memory that the values of one file may take, in bytes, roughly; aliases count as often as used.
const MAX_WEIGHT: usize = 256 << 20;
/// Most repeated keys that are remembered.
const MAX_REPEATED: usize = 20;
/// What a value takes besides its text.
const NODE_WEIGHT: usize = 32;

/// All documents of `text` that hold something, in their order. The error is in the words of the
/// library that upstream uses, where one of its common messages fits.
pub(crate) fn documents(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let text = text(bytes)?;
    if let Some(values) = json(text) {
        return Ok(values);
    }
    let mut builder = Builder::default();
    builder.read(text)?;
    Ok(builder.documents)
}

/// Keys that stand twice in one map: line and name.
type RepeatedKeys = Vec<(usize, String)>;

/// As [`documents`], with the line and the name of keys that stand twice in one map; the first few of them.
pub(crate) fn documents_and_repeated_keys(bytes: &[u8]) -> (Result<Vec<Value>, String>, RepeatedKeys) {
    let mut builder = Builder::default();
    // JSON is YAML, too, and its own reader would not tell.
    let read = text(bytes).and_then(|text| builder.read(text));
    (read.map(|()| builder.documents), builder.repeated)
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// A single document; an empty text is null.
pub(crate) fn document(bytes: &[u8]) -> Result<Value, String> {
    Ok(documents(bytes)?.into_iter().next().unwrap_or(Value::Null))
}

/// JSON is tried first where the text looks like it: it is much faster.
fn json(text: &str) -> Option<Vec<Value>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values
        .map(|value| value.map(whole_numbers))
        .collect::<Result<_, _>>()
        .ok()
}

/// `1.0` is `1`. Depth is bounded by the JSON parser.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            Value::Number(number.as_f64().and_then(scalar::float).unwrap_or(number))
        }
        Value::Array(items) => items.into_iter().map(whole_numbers).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, whole_numbers(value)))
            .collect(),
        other => other,
    }
}

fn is_refused_control(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// The parser's complaint, in the words of the reader clients know where there is a counterpart.
fn scan_error(error: &ScanError, open: Option<&Open>) -> String {
    let line = error.marker().line().saturating_sub(1).max(1);
    let text = error.to_string();
    let known = match (error.kind(), open) {
        (ErrorKind::ExpectedFlowSequenceSeparator | ErrorKind::UnexpectedEofFlowSequence, _) => {
            "did not find expected ',' or ']'"
        }
        _ if text.starts_with("illegal placement of ':'")
            && matches!(open.map(|open| &open.content), Some(Content::List(_))) =>
        {
            "did not find expected ',' or ']'"
        }
        _ => text.as_str(),
    };
    format!("yaml: line {line}: {known}")
}

/// A finished value, with what it costs and how deep it is.
#[derive(Clone)]
struct Item {
    value: Value,
    /// Bytes of memory, roughly.
    weight: usize,
    /// Levels of collections in it.
    height: usize,
}

/// A collection that is not complete yet.
struct Open {
    content: Content,
    anchor: usize,
    weight: usize,
    height: usize,
}

enum Content {
    List(Vec<Value>),
    Map {
        entries: Map<String, Value>,
        merged: Map<String, Value>,
        key: Option<Key>,
    },
}

enum Key {
    Text(String),
    Merge,
}

#[derive(Default)]
struct Builder {
    documents: Vec<Value>,
    open: Vec<Open>,
    anchors: HashMap<usize, Item>,
    weight: usize,
    /// Line and name of keys that stand twice; at most [`MAX_REPEATED`].
    repeated: RepeatedKeys,
}

impl Builder {
    fn read(&mut self, text: &str) -> Result<(), String> {
        if text.chars().any(is_refused_control) {
            return Err("yaml: control characters are not allowed".to_owned());
        }
        for item in Parser::new_from_str(text) {
            let (event, span) = item.map_err(|error| scan_error(&error, self.open.last()))?;
            self.event(event, span.start.line())?;
        }
        Ok(())
    }

    fn event(&mut self, event: Event<'_>, line: usize) -> Result<(), String> {
        match event {
            Event::DocumentStart(..) => self.anchors.clear(),
            Event::Alias(id) => {
                let unknown = || format!("yaml: line {line}: anchor contains itself or is unknown");
                let (weight, height) = self
                    .anchors
                    .get(&id)
                    .map(|item| (item.weight, item.height))
                    .ok_or_else(unknown)?;
                // Checked before anything is copied: aliases of aliases grow exponentially.
                self.count(weight)?;
                self.check_depth(height)?;
                let item = self.anchors.get(&id).cloned().ok_or_else(unknown)?;
                self.place(item, line)?;
            }
            Event::Scalar(text, style, anchor, tag) => {
                let weight = NODE_WEIGHT.saturating_add(text.len());
                self.count(weight)?;
                let tag = tag.as_deref().map(Tag::to_string);
                let plain = style == ScalarStyle::Plain;
                if plain && tag.is_none() && text == "<<" && self.expect_merge() {
                    return Ok(());
                }
                let value = scalar::resolve(&text, plain, tag.as_deref());
                self.finish(
                    Item {
                        value,
                        weight,
                        height: 0,
                    },
                    anchor,
                    line,
                )?;
            }
            Event::SequenceStart(_, anchor, _) => self.push(Content::List(Vec::new()), anchor)?,
            Event::MappingStart(_, anchor, _) => {
                self.push(
                    Content::Map {
                        entries: Map::new(),
                        merged: Map::new(),
                        key: None,
                    },
                    anchor,
                )?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let open = self
                    .open
                    .pop()
                    .ok_or_else(|| format!("yaml: line {line}: unexpected end of a collection"))?;
                let value = match open.content {
                    Content::List(items) => Value::Array(items),
                    Content::Map {
                        entries, mut merged, ..
                    } => {
                        // An explicit key beats a merged one, wherever it stands.
                        merged.extend(entries);
                        Value::Object(merged)
                    }
                };
                let height = open.height.saturating_add(1);
                self.finish(
                    Item {
                        value,
                        weight: open.weight,
                        height,
                    },
                    open.anchor,
                    line,
                )?;
            }
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, content: Content, anchor: usize) -> Result<(), String> {
        self.count(NODE_WEIGHT)?;
        self.check_depth(1)?;
        self.open.push(Open {
            content,
            anchor,
            weight: NODE_WEIGHT,
            height: 0,
        });
        Ok(())
    }

    fn count(&mut self, weight: usize) -> Result<(), String> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight > MAX_WEIGHT {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        Ok(())
    }

    /// Values are walked recursively later on, so that their depth must stay far below the stack's.
    fn check_depth(&self, height: usize) -> Result<(), String> {
        if self.open.len().saturating_add(height) > MAX_DEPTH {
            return Err("yaml: exceeded max depth".to_owned());
        }
        Ok(())
    }

    /// Takes note of a merge key where a key may stand.
    fn expect_merge(&mut self) -> bool {
        if let Some(Open {
            content: Content::Map { key: key @ None, .. },
            ..
        }) = self.open.last_mut()
        {
            *key = Some(Key::Merge);
            return true;
        }
        false
    }

    fn finish(&mut self, item: Item, anchor: usize, line: usize) -> Result<(), String> {
        if anchor > 0 {
            self.count(item.weight)?;
            self.anchors.insert(anchor, item.clone());
        }
        self.place(item, line)
    }

    fn place(&mut self, item: Item, line: usize) -> Result<(), String> {
        let Some(open) = self.open.last_mut() else {
            if !item.value.is_null() {
                self.documents.push(item.value);
            }
            return Ok(());
        };
        open.weight = open.weight.saturating_add(item.weight);
        open.height = open.height.max(item.height);
        match &mut open.content {
            Content::List(items) => items.push(item.value),
            Content::Map { entries, merged, key } => match key.take() {
                None => *key = Some(Key::Text(key_text(item.value, line)?)),
                Some(Key::Text(name)) => {
                    if self.repeated.len() < MAX_REPEATED && entries.contains_key(&name) {
                        self.repeated.push((line, name.clone()));
                    }
                    entries.insert(name, item.value);
                }
                Some(Key::Merge) => merge(merged, item.value, line)?,
            },
        }
        Ok(())
    }
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
