//! Sets of fields, in the form of `fieldsV1`.
//!
//! A path element is kept as its `fieldsV1` text: `f:NAME`, `k:KEYS`, `v:VALUE`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Identity, Type};

/// Set of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Set(BTreeMap<String, Entry>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    member: bool,
    below: Set,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl Set {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a path.
    pub(crate) fn insert(&mut self, path: &[String]) {
        match path {
            [] => {}
            [last] => self.0.entry(last.clone()).or_default().member = true,
            [first, rest @ ..] => self.0.entry(first.clone()).or_default().below.insert(rest),
        }
    }

    /// Returns true if the element is a member itself.
    pub(crate) fn has(&self, element: &str) -> bool {
        self.0.get(element).is_some_and(|entry| entry.member)
    }

    /// Returns the members below an element.
    pub(crate) fn below(&self, element: &str) -> Option<&Self> {
        let below = &self.0.get(element)?.below;
        (!below.is_empty()).then_some(below)
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        for (element, entry) in &other.0 {
            let into = out.0.entry(element.clone()).or_default();
            into.member |= entry.member;
            into.below = into.below.union(&entry.below);
        }
        out
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine(|element, entry| {
            other.0.get(element).map_or_else(Entry::default, |found| Entry {
                member: entry.member && found.member,
                below: entry.below.intersection(&found.below),
            })
        })
    }

    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.combine(|element, entry| {
            other.0.get(element).map_or_else(
                || entry.clone(),
                |found| Entry {
                    member: entry.member && !found.member,
                    below: entry.below.difference(&found.below),
                },
            )
        })
    }

    /// Removes the members of `other` and everything below them.
    pub(crate) fn without(&self, other: &Self) -> Self {
        self.combine(|element, entry| match other.0.get(element) {
            None => entry.clone(),
            Some(found) if found.member => Entry::default(),
            Some(found) => Entry {
                member: entry.member,
                below: entry.below.without(&found.below),
            },
        })
    }

    fn combine(&self, keep: impl Fn(&str, &Entry) -> Entry) -> Self {
        let entries = self.0.iter().filter_map(|(element, entry)| {
            let kept = keep(element, entry);
            (!kept.is_empty()).then(|| (element.clone(), kept))
        });
        Self(entries.collect())
    }

    /// Makes every named field on the way to a member a member as well.
    pub(crate) fn with_named_fields(&self, of: &Type) -> Self {
        let entries = self.0.iter().map(|(element, entry)| {
            let mut out = entry.clone();
            let mut below = None;
            match of.resolve() {
                Type::Map(map) => {
                    if let Some(name) = element.strip_prefix("f:") {
                        out.member |= map.fields.contains_key(name);
                        below = map.field(name);
                    }
                }
                Type::List(list) if !matches!(list.identity, Identity::Atomic) => below = Some(&list.element),
                _ => {}
            }
            out.below = entry.below.with_named_fields(below.unwrap_or(&Type::Any));
            (element.clone(), out)
        });
        Self(entries.collect())
    }

    /// Returns all members as paths.
    pub(crate) fn paths(&self) -> Vec<Vec<String>> {
        let mut out = Vec::new();
        for (element, entry) in &self.0 {
            if entry.member {
                out.push(vec![element.clone()]);
            }
            for mut path in entry.below.paths() {
                path.insert(0, element.clone());
                out.push(path);
            }
        }
        out
    }

    /// Returns the set as `fieldsV1`.
    pub(crate) fn encode(&self) -> Value {
        let entries = self.0.iter().map(|(element, entry)| {
            let mut below = entry.below.encode();
            if let (true, false, Value::Object(map)) = (entry.member, entry.below.is_empty(), &mut below) {
                map.insert(".".into(), Value::Object(Map::new()));
            }
            (element.clone(), below)
        });
        Value::Object(entries.collect())
    }

    /// Reads `fieldsV1`.
    pub(crate) fn decode(value: &Value) -> Self {
        let entries = value.as_object().into_iter().flatten();
        let entries = entries
            .filter(|(element, _)| *element != ".")
            .map(|(element, below)| {
                let entry = Entry {
                    member: below.get(".").is_some() || below.as_object().is_none_or(Map::is_empty),
                    below: Self::decode(below),
                };
                (element.clone(), entry)
            });
        Self(entries.collect())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Set;

    #[test]
    fn sets_keep_their_form() {
        let written =
            json!({"f:data": {".": {}, "f:a": {}}, "f:list": {"k:{\"name\":\"x\"}": {".": {}, "f:v": {}}}});
        let set = Set::decode(&written);
        assert_eq!(set.encode(), written);
        assert_eq!(set.union(&set), set);
        assert!(set.difference(&set).is_empty());
        let part = Set::decode(&json!({"f:data": {"f:a": {}}}));
        assert_eq!(set.intersection(&part), part);
        let rest = set.difference(&part).encode();
        assert_eq!(rest, json!({"f:data": {}, "f:list": written["f:list"]}));
    }
}
