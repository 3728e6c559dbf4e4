//! One YAML document as the fields of a meta.
//!
//! Anchors, aliases and merge keys work. Aliases are expanded, within a budget of bytes, so that a small
//! document cannot become a large one unnoticed.

use crate::canonical;
use crate::decode::{DecodeError, Limits};
use crate::scalar;
use granit_parser::{Event, Parser, StrInput};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Cost of a node beside its text, in bytes; about what it takes as canonical JSON.
const NODE: usize = 4;

/// The fields of the mapping in `text`, in the order written; none when the document is empty.
pub(crate) fn fields(text: &[u8], limits: &Limits) -> Result<Option<Vec<(String, Value)>>, DecodeError> {
    let text = std::str::from_utf8(text).map_err(|source| DecodeError::Encoding { source })?;
    let mut composer = Composer {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        depth: 0,
        replayed: 0,
        limits: *limits,
    };
    let mut fields = None;
    loop {
        match composer.event()? {
            Event::StreamEnd => return Ok(fields),
            Event::MappingStart(_, anchor, _) if fields.is_none() => {
                fields = Some(composer.pairs(anchor)?);
            }
            Event::Scalar(text, style, _, tag) if fields.is_none() => {
                if scalar::resolve(&text, style, tag.as_deref())? != Value::Null {
                    return Err(DecodeError::NotAnObject);
                }
            }
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd | Event::Comment(..) => {}
            _ => return Err(DecodeError::NotAnObject),
        }
    }
}

struct Composer<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// Every anchored value so far with its cost.
    anchors: HashMap<usize, (Value, usize)>,
    depth: usize,
    /// What aliases have expanded to so far, in bytes.
    replayed: usize,
    limits: Limits,
}

impl<'a> Composer<'a> {
    fn event(&mut self) -> Result<Event<'a>, DecodeError> {
        loop {
            match self.parser.next_event() {
                None => return Ok(Event::StreamEnd),
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok((event, _))) => return Ok(event),
                Some(Err(error)) => {
                    return Err(DecodeError::Yaml {
                        reason: error.to_string(),
                    });
                }
            }
        }
    }

    fn value(&mut self, event: Event<'a>) -> Result<Value, DecodeError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar::resolve(&text, style, tag.as_deref())?;
                self.remember(anchor, &value)?;
                Ok(value)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.deeper()?;
                let mut items = Vec::new();
                loop {
                    match self.event()? {
                        Event::SequenceEnd => break,
                        event => items.push(self.value(event)?),
                    }
                }
                self.depth -= 1;
                let value = Value::Array(items);
                self.remember(anchor, &value)?;
                Ok(value)
            }
            Event::MappingStart(_, anchor, _) => Ok(Value::Object(self.pairs(anchor)?.into_iter().collect())),
            Event::Alias(anchor) => self.alias(anchor),
            _ => Err(DecodeError::Yaml {
                reason: "the document ends inside a value".to_owned(),
            }),
        }
    }

    /// The pairs of a mapping whose start was read. What a merge key brings in gives way to what is
    /// written.
    fn pairs(&mut self, anchor: usize) -> Result<Vec<(String, Value)>, DecodeError> {
        self.deeper()?;
        let mut pairs = Vec::new();
        let mut merged = Map::new();
        loop {
            let event = match self.event()? {
                Event::MappingEnd => break,
                event => event,
            };
            let merging = scalar::is_merge(&event);
            let key = self.value(event)?;
            let event = self.event()?;
            let value = self.value(event)?;
            if merging {
                merge(value, &mut merged)?;
            } else {
                pairs.push((key_text(key)?, value));
            }
        }
        self.depth -= 1;
        merged.retain(|key, _| pairs.iter().all(|(written, _)| written != key));
        pairs.extend(merged);
        if anchor > 0 {
            let whole = Value::Object(pairs.iter().cloned().collect());
            self.remember(anchor, &whole)?;
        }
        Ok(pairs)
    }

    fn deeper(&mut self) -> Result<(), DecodeError> {
        self.depth += 1;
        if self.depth > self.limits.max_depth {
            return Err(DecodeError::TooDeep {
                limit: self.limits.max_depth,
            });
        }
        Ok(())
    }

    /// Keeps an anchored value, which is one more copy of it.
    fn remember(&mut self, anchor: usize, value: &Value) -> Result<(), DecodeError> {
        if anchor > 0 {
            let cost = cost(value);
            self.spend(cost)?;
            self.anchors.insert(anchor, (value.clone(), cost));
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize) -> Result<Value, DecodeError> {
        let Some(cost) = self.anchors.get(&anchor).map(|(_, cost)| *cost) else {
            return Err(DecodeError::Yaml {
                reason: "an alias refers to a value it is part of".to_owned(),
            });
        };
        self.spend(cost)?;
        let value = self
            .anchors
            .get(&anchor)
            .map(|(value, _)| value.clone())
            .unwrap_or_default();
        if self.depth + depth(&value) > self.limits.max_depth {
            return Err(DecodeError::TooDeep {
                limit: self.limits.max_depth,
            });
        }
        Ok(value)
    }

    fn spend(&mut self, cost: usize) -> Result<(), DecodeError> {
        let limit = self.limits.max_meta_bytes;
        self.replayed = self.replayed.saturating_add(cost);
        if self.replayed > limit {
            Err(DecodeError::AliasBomb { limit })
        } else {
            Ok(())
        }
    }
}

/// Adds the fields of `value`, a mapping or a list of mappings; earlier ones have precedence.
fn merge(value: Value, into: &mut Map<String, Value>) -> Result<(), DecodeError> {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                into.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(items) if items.iter().all(Value::is_object) => {
            items.into_iter().try_for_each(|item| merge(item, into))
        }
        _ => Err(DecodeError::Yaml {
            reason: "map merge requires map or sequence of maps as the value".to_owned(),
        }),
    }
}

/// A key as text: JSON knows no other keys.
fn key_text(key: Value) -> Result<String, DecodeError> {
    match key {
        Value::String(text) => Ok(text),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Number(value) => {
            let mut text = String::new();
            canonical::number(&value, &mut text);
            Ok(text)
        }
        Value::Null | Value::Array(_) | Value::Object(_) => Err(DecodeError::Yaml {
            reason: "a key must be a string, a number or a boolean".to_owned(),
        }),
    }
}

fn cost(value: &Value) -> usize {
    NODE + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(cost).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + cost(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
