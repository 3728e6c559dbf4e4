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

/// Most merge keys in one mapping; each goes through the whole mapping.
const MAX_MERGES: usize = 64;
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

    /// The pairs of a mapping whose start was read. A merge key takes effect where it stands: it overrides
    /// what is written before it, and what is written after it overrides what it brought.
    fn pairs(&mut self, anchor: usize) -> Result<Vec<(String, Value)>, DecodeError> {
        self.deeper()?;
        let mut pairs: Vec<(String, Value)> = Vec::new();
        // Where the fields stand that a merge key brought and that may be written once more.
        let mut brought: HashMap<String, usize> = HashMap::new();
        let mut merges = 0;
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
                merges += 1;
                if merges > MAX_MERGES {
                    let reason = format!("more than {MAX_MERGES} merge keys in one mapping");
                    return Err(DecodeError::Yaml { reason });
                }
                brought.extend(merge_into(&mut pairs, value)?);
                continue;
            }
            let key = key_text(key)?;
            match brought.remove(&key).and_then(|at| pairs.get_mut(at)) {
                Some((_, old)) => *old = value,
                None => pairs.push((key, value)),
            }
        }
        self.depth -= 1;
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

/// The fields that a merge key brings in: those of a mapping, or of a list of mappings in which earlier ones
/// have precedence.
fn merge_fields(value: Value) -> Result<Map<String, Value>, DecodeError> {
    let unfit = || DecodeError::Yaml {
        reason: "map merge requires map or sequence of maps as the value".to_owned(),
    };
    match value {
        Value::Object(fields) => Ok(fields),
        Value::Array(items) => {
            let mut all = Map::new();
            for item in items.into_iter().rev() {
                let Value::Object(fields) = item else {
                    return Err(unfit());
                };
                all.extend(fields);
            }
            Ok(all)
        }
        _ => Err(unfit()),
    }
}

/// Sets the fields that a merge key brings in; returns those that were not there before, with their places.
fn merge_into(pairs: &mut Vec<(String, Value)>, value: Value) -> Result<Vec<(String, usize)>, DecodeError> {
    let places: HashMap<String, usize> = pairs
        .iter()
        .enumerate()
        .map(|(at, (key, _))| (key.clone(), at))
        .collect();
    let mut new = Vec::new();
    for (key, value) in merge_fields(value)? {
        if let Some((_, old)) = places.get(&key).and_then(|at| pairs.get_mut(*at)) {
            *old = value;
        } else {
            new.push((key.clone(), pairs.len()));
            pairs.push((key, value));
        }
    }
    Ok(new)
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
