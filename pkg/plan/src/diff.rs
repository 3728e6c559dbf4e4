//! Differences between two objects, field by field.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use olm_bundle::canonical_json;
use olm_text::cut;
use serde_json::{Map, Value};

use crate::model::{FieldChange, is_description};

/// Maximum number of named fields of one object.
const FIELDS_OF_OBJECT: usize = 100;
/// Maximum number of named fields of a plan.
const FIELDS: usize = 5_000;
/// Maximum length of a value's text in bytes.
const VALUE_LIMIT: usize = 200;
/// Maximum length of a path in bytes.
const PATH_LIMIT: usize = 400;
/// Text in the place of a secret value.
const HIDDEN: &str = "(hidden)";

/// Number of fields that a plan may still name.
#[derive(Clone, Copy, Debug)]
pub struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(FIELDS)
    }
}

/// Changed fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Fields that are named.
    pub changes: Vec<FieldChange>,
    /// Number of fields beyond the limits.
    pub more: usize,
}

/// Returns the fields in which two manifests differ; none exactly if the manifests are equal. Values of Secrets are hidden.
pub fn fields(before: &Value, after: &Value, budget: &mut Budget) -> Fields {
    let is_secret = |object: &Value| {
        let text = |key| object.get(key).and_then(Value::as_str);
        text("kind") == Some("Secret") && text("apiVersion") == Some("v1")
    };
    let mut walk = Walk {
        secret: is_secret(before) || is_secret(after),
        room: FIELDS_OF_OBJECT.min(budget.0),
        path: String::new(),
        found: Fields::default(),
        descriptions: Vec::new(),
    };
    walk.value(Some(before), Some(after));
    let found = walk.finish();
    budget.0 = budget.0.saturating_sub(found.changes.len());
    found
}

struct Walk {
    secret: bool,
    room: usize,
    path: String,
    found: Fields,
    /// Descriptions of a schema, which must not take the room of changes that have an effect.
    descriptions: Vec<FieldChange>,
}

impl Walk {
    /// Returns the fields; descriptions come last.
    fn finish(mut self) -> Fields {
        let room = self.room.saturating_sub(self.found.changes.len());
        self.found.more += self.descriptions.len().saturating_sub(room);
        self.found
            .changes
            .extend(self.descriptions.into_iter().take(room));
        self.found
    }

    fn value(&mut self, before: Option<&Value>, after: Option<&Value>) {
        match (before, after) {
            (before, after) if before == after => {}
            (Some(Value::Object(before)), Some(Value::Object(after))) => self.map(before, after),
            (Some(Value::Array(before)), Some(Value::Array(after))) => self.list(before, after),
            (before, after) => self.add(before, after),
        }
    }

    fn map(&mut self, before: &Map<String, Value>, after: &Map<String, Value>) {
        let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for key in keys {
            self.below(&escaped(key), before.get(key), after.get(key));
        }
    }

    /// Compares lists of named objects by name, and other lists by position without their equal start and end.
    fn list(&mut self, before: &[Value], after: &[Value]) {
        if let (Some(old), Some(new)) = (by_name(before), by_name(after)) {
            let known = self.count();
            let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
            for name in names {
                let segment = format!("name={}", escaped(name));
                self.below(&segment, old.get(name).copied(), new.get(name).copied());
            }
            if self.count() == known {
                // Only the order differs.
                self.add(Some(&names_of(before)), Some(&names_of(after)));
            }
            return;
        }
        let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
        let (old, new) = (
            before.get(start..).unwrap_or_default(),
            after.get(start..).unwrap_or_default(),
        );
        let end = old
            .iter()
            .rev()
            .zip(new.iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        let (old, new) = (
            old.get(..old.len() - end).unwrap_or_default(),
            new.get(..new.len() - end).unwrap_or_default(),
        );
        for at in 0..old.len().max(new.len()) {
            self.below(&(start + at).to_string(), old.get(at), new.get(at));
        }
    }

    fn below(&mut self, segment: &str, before: Option<&Value>, after: Option<&Value>) {
        if before == after {
            return;
        }
        let length = self.path.len();
        // Writing into a String cannot fail.
        let _ = write!(self.path, "/{segment}");
        self.value(before, after);
        self.path.truncate(length);
    }

    fn add(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let described = is_description(&self.path);
        let known = if described {
            &self.descriptions
        } else {
            &self.found.changes
        };
        if known.len() >= self.room {
            self.found.more += 1;
            return;
        }
        let hidden = self.secret && (self.path.starts_with("/data") || self.path.starts_with("/stringData"));
        let shown = |value: Option<&Value>| {
            value.map(|value| {
                if hidden {
                    HIDDEN.to_owned()
                } else {
                    cut(&canonical_json(value), VALUE_LIMIT).into_owned()
                }
            })
        };
        let change = FieldChange {
            path: cut(&self.path, PATH_LIMIT).into_owned(),
            before: shown(before),
            after: shown(after),
        };
        if described {
            self.descriptions.push(change);
        } else {
            self.found.changes.push(change);
        }
    }

    fn count(&self) -> usize {
        self.found.changes.len() + self.descriptions.len() + self.found.more
    }
}

/// Returns the elements by name; none if an element has no name or two have the same.
fn by_name(list: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    let mut named = BTreeMap::new();
    for element in list {
        let name = element.as_object()?.get("name")?.as_str()?;
        if named.insert(name, element).is_some() {
            return None;
        }
    }
    Some(named)
}

fn names_of(list: &[Value]) -> Value {
    list.iter()
        .filter_map(|element| element.get("name").cloned())
        .collect()
}

/// Escapes a segment of a JSON pointer.
fn escaped(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) {
        Cow::Owned(key.replace('~', "~0").replace('/', "~1"))
    } else {
        Cow::Borrowed(key)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_a_secret_are_hidden_on_either_side() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "c2VjcmV0"}});
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "open"}});
        for (before, after) in [(&secret, &other), (&other, &secret)] {
            let found = fields(before, after, &mut Budget::default());
            let data = found
                .changes
                .iter()
                .find(|change| change.path == "/data/a")
                .unwrap();
            assert_eq!(data.before.as_deref(), Some(HIDDEN));
            assert_eq!(data.after.as_deref(), Some(HIDDEN));
        }
    }

    #[test]
    fn changes_beyond_the_room_are_no_other_order() {
        let list =
            |values: [u8; 2]| json!([{"name": "a", "value": values[0]}, {"name": "b", "value": values[1]}]);
        for (room, after, more) in [(2, [2, 2], 0), (1, [2, 2], 1), (0, [2, 1], 1), (0, [2, 2], 2)] {
            let found = fields(&list([1, 1]), &list(after), &mut Budget(room));
            assert_eq!((found.changes.len(), found.more), (room, more), "{after:?}");
        }
    }

    #[test]
    fn equal_starts_and_ends_of_lists_are_no_change() {
        let changes = |before: &Value, after: &Value| -> Vec<(String, Option<String>, Option<String>)> {
            let found = fields(before, after, &mut Budget::default());
            let changes = found.changes.into_iter();
            changes
                .map(|change| (change.path, change.before, change.after))
                .collect()
        };
        let text = |value: &str| Some(format!("{value:?}"));
        let (shorter, longer) = (json!(["a", "b", "y", "z"]), json!(["a", "c", "d", "y", "z"]));
        let grown = [
            ("/1".to_owned(), text("b"), text("c")),
            ("/2".to_owned(), None, text("d")),
        ];
        assert_eq!(changes(&shorter, &longer), grown);
        let shrunk = grown.map(|(path, before, after)| (path, after, before));
        assert_eq!(changes(&longer, &shorter), shrunk);
    }
}
