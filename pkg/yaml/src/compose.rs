//! Composes one document from parser events into a JSON value.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use crate::budget::{Budget, Cost};
use crate::events::{self, Event};
use crate::parser::Parser;
use crate::scalar::{self, Scalar};
use crate::{Limits, YamlError};

/// Maximum number of reported repeated keys.
const MAX_REPEATED: usize = 20;

/// A key that is repeated in one mapping; the last value is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedKey {
    /// Line of the second value, counted from 1.
    pub line: u64,
    /// The key.
    pub key: String,
}

/// A document and its repeated keys.
#[derive(Debug)]
pub struct Composed {
    /// Value of the document.
    pub value: Value,
    /// The first few keys that are repeated in a mapping.
    pub repeated: Vec<RepeatedKey>,
}

/// Reads the first document of a YAML text; see [`document`](crate::document).
///
/// # Errors
/// [`YamlError`] if the text is not YAML, has no JSON form, or exceeds a limit.
pub fn compose(text: &[u8], limits: &Limits) -> Result<Composed, YamlError> {
    let text = events::decode(text)?;
    let mut events = Parser::new(&text);
    let mut composer = Composer::new(*limits);
    while let Some((event, line)) = events.next()? {
        composer.handle(event, line)?;
    }
    Ok(Composed {
        value: composer.root,
        repeated: composer.repeated,
    })
}

/// A finished value and its cost.
#[derive(Clone)]
struct Node {
    content: Content,
    cost: Cost,
}

#[derive(Clone)]
enum Content {
    /// A scalar, not yet JSON: its form as a key may differ from its form as a value.
    Scalar(Scalar),
    Collection(Value),
}

impl Content {
    fn value(self) -> Result<Value, YamlError> {
        match self {
            Self::Scalar(scalar) => scalar.value(),
            Self::Collection(value) => Ok(value),
        }
    }

    fn key(self) -> Result<String, YamlError> {
        match self {
            Self::Scalar(scalar) => scalar.key(),
            Self::Collection(_) => Err(YamlError::problem("invalid map key: a list or a map")),
        }
    }
}

/// An anchor: an open collection, by its number, or a finished value.
enum Anchor {
    Open(usize),
    Finished(Node),
}

/// A collection that is not complete yet.
struct Open {
    items: Items,
    anchor: Option<String>,
    /// Number of the collection in the document.
    number: usize,
    cost: Cost,
}

enum Items {
    List(Vec<Value>),
    Map {
        members: Map<String, Value>,
        key: Option<Key>,
        /// Keys from a merge; an explicit key of the same name is not a repetition.
        merged: BTreeSet<String>,
    },
}

enum Key {
    Text(String),
    Merge,
}

struct Composer {
    root: Value,
    open: Vec<Open>,
    collections: usize,
    anchors: HashMap<String, Anchor>,
    budget: Budget,
    repeated: Vec<RepeatedKey>,
}

impl Composer {
    fn new(limits: Limits) -> Self {
        Self {
            root: Value::Null,
            open: Vec::new(),
            collections: 0,
            anchors: HashMap::new(),
            budget: Budget::new(limits),
            repeated: Vec::new(),
        }
    }

    fn handle(&mut self, event: Event, line: u64) -> Result<(), YamlError> {
        match event {
            Event::Scalar {
                text,
                implicit,
                tag,
                anchor,
            } => {
                if scalar::is_merge(&text, implicit, tag.as_deref()) && self.expect_merge() {
                    return Ok(());
                }
                let cost = self.budget.scalar(text.len())?;
                let content = Content::Scalar(scalar::resolve(text, implicit, tag.as_deref())?);
                self.finish(Node { content, cost }, anchor, line)
            }
            Event::Sequence { anchor } => self.start(Items::List(Vec::new()), anchor),
            Event::Mapping { anchor } => {
                let items = Items::Map {
                    members: Map::new(),
                    key: None,
                    merged: BTreeSet::new(),
                };
                self.start(items, anchor)
            }
            Event::End => self.end(line),
            Event::Alias(name) => self.alias(&name, line),
        }
    }

    fn start(&mut self, items: Items, anchor: Option<String>) -> Result<(), YamlError> {
        self.budget.check_depth(self.open.len() + 1)?;
        let cost = self.budget.collection(matches!(items, Items::List(_)))?;
        self.collections += 1;
        if let Some(name) = &anchor {
            self.anchors.insert(name.clone(), Anchor::Open(self.collections));
        }
        self.open.push(Open {
            items,
            anchor,
            number: self.collections,
            cost,
        });
        Ok(())
    }

    fn end(&mut self, line: u64) -> Result<(), YamlError> {
        let Some(open) = self.open.pop() else {
            return Err(YamlError::problem("a collection ends that did not start"));
        };
        let value = match open.items {
            Items::List(items) => Value::Array(items),
            Items::Map { members, .. } => Value::Object(members),
        };
        let node = Node {
            content: Content::Collection(value),
            cost: open.cost.higher(),
        };
        // An anchor of the same name inside the collection is the newer one.
        let anchor = open.anchor.filter(
            |name| matches!(self.anchors.get(name), Some(Anchor::Open(number)) if *number == open.number),
        );
        self.finish(node, anchor, line)
    }

    fn alias(&mut self, name: &str, line: u64) -> Result<(), YamlError> {
        let cost = match self.anchors.get(name) {
            None => return Err(YamlError::problem(format!("unknown anchor '{name}' referenced"))),
            Some(Anchor::Open(_)) => {
                return Err(YamlError::problem(format!(
                    "anchor '{name}' value contains itself"
                )));
            }
            Some(Anchor::Finished(node)) => node.cost,
        };
        // Checked before the copy: aliases of aliases grow exponentially.
        let cost = self.budget.alias(cost)?;
        self.budget.check_depth(self.open.len() + cost.height)?;
        let Some(Anchor::Finished(node)) = self.anchors.get(name) else {
            return Ok(());
        };
        let content = node.content.clone();
        if self.merges() && !matches!(content, Content::Collection(Value::Object(_))) {
            return Err(merge_requires_maps());
        }
        self.place(Node { content, cost }, line)
    }

    /// Records a merge key if a key is expected; returns true if so.
    fn expect_merge(&mut self) -> bool {
        if let Some(Open {
            items: Items::Map { key: key @ None, .. },
            ..
        }) = self.open.last_mut()
        {
            *key = Some(Key::Merge);
            return true;
        }
        false
    }

    /// Returns true if the next value is merged into the innermost mapping.
    fn merges(&self) -> bool {
        let items = self.open.last().map(|open| &open.items);
        matches!(
            items,
            Some(Items::Map {
                key: Some(Key::Merge),
                ..
            })
        )
    }

    fn finish(&mut self, node: Node, anchor: Option<String>, line: u64) -> Result<(), YamlError> {
        if let Some(name) = anchor {
            self.budget.copy(node.cost)?;
            self.anchors.insert(name, Anchor::Finished(node.clone()));
        }
        self.place(node, line)
    }

    /// Adds a finished value to the innermost open collection.
    fn place(&mut self, node: Node, line: u64) -> Result<(), YamlError> {
        let Some(open) = self.open.last_mut() else {
            self.root = node.content.value()?;
            return Ok(());
        };
        open.cost.add(node.cost);
        match &mut open.items {
            Items::List(items) => items.push(node.content.value()?),
            Items::Map { members, key, merged } => match key.take() {
                None => *key = Some(Key::Text(node.content.key()?)),
                Some(Key::Text(name)) => {
                    open.cost.add(self.budget.member(members.is_empty())?);
                    let from_merge = merged.remove(&name);
                    let repeats = members.contains_key(&name) && !from_merge;
                    if repeats && self.repeated.len() < MAX_REPEATED {
                        self.repeated.push(RepeatedKey {
                            line: line + 1,
                            key: name.clone(),
                        });
                    }
                    members.insert(name, node.content.value()?);
                }
                Some(Key::Merge) => {
                    for (name, value) in merge(node.content)? {
                        open.cost.add(self.budget.member(members.is_empty())?);
                        merged.insert(name.clone());
                        members.insert(name, value);
                    }
                }
            },
        }
        Ok(())
    }
}

fn merge_requires_maps() -> YamlError {
    YamlError::problem("map merge requires map or sequence of maps as the value")
}

/// Returns the members of a merge: those of a mapping, or of a list of mappings in which earlier ones have precedence.
/// They override members before the merge key; members after it override them.
fn merge(content: Content) -> Result<Map<String, Value>, YamlError> {
    match content {
        Content::Collection(Value::Object(members)) => Ok(members),
        Content::Collection(Value::Array(items)) => {
            let mut all = Map::new();
            for item in items.into_iter().rev() {
                let Value::Object(members) = item else {
                    return Err(merge_requires_maps());
                };
                all.extend(members);
            }
            Ok(all)
        }
        _ => Err(merge_requires_maps()),
    }
}
