//! Objects and their history.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// Identity of a stored object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// API group; empty for the core group.
    pub group: String,
    /// Plural of the kind.
    pub plural: String,
    /// Namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// One accepted write.
#[derive(Clone, Debug)]
pub struct Event {
    /// Resource version of the write.
    pub revision: u64,
    /// The object.
    pub key: Arc<Key>,
    /// The object before; `None` for a creation.
    pub before: Option<Arc<Value>>,
    /// The object after; `None` for a removal.
    pub after: Option<Arc<Value>>,
}

/// Objects, resource version, history. A clone shares everything until one of both is written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    objects: Arc<BTreeMap<Arc<Key>, Arc<Value>>>,
    events: Arc<Vec<Event>>,
    revision: u64,
    /// Events up to this resource version are forgotten.
    compacted: u64,
}

impl Store {
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn compacted(&self) -> u64 {
        self.compacted
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Value>> {
        self.objects.get(key)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&Arc<Key>, &Arc<Value>)> {
        self.objects.iter()
    }

    /// Returns the objects of a kind in the order of namespaces and names; of all namespaces if `namespace` is `None`.
    pub(crate) fn list<'a>(
        &'a self,
        group: &'a str,
        plural: &'a str,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Arc<Key>, &'a Arc<Value>)> {
        let first = Key {
            group: group.into(),
            plural: plural.into(),
            namespace: namespace.unwrap_or_default().into(),
            name: String::new(),
        };
        self.objects
            .range::<Key, _>(first..)
            .take_while(move |(key, _)| key.group == group && key.plural == plural)
            .take_while(move |(key, _)| namespace.is_none_or(|namespace| key.namespace == namespace))
    }

    /// Writes or removes an object. `write` gets the resource version and returns the object to store.
    pub(crate) fn write(&mut self, key: &Key, write: impl FnOnce(u64) -> Option<Value>) -> Event {
        self.revision += 1;
        let objects = Arc::make_mut(&mut self.objects);
        let after = write(self.revision).map(Arc::new);
        let shared = objects
            .get_key_value(key)
            .map_or_else(|| Arc::new(key.clone()), |(key, _)| Arc::clone(key));
        let before = match &after {
            Some(after) => objects.insert(Arc::clone(&shared), Arc::clone(after)),
            None => objects.remove(key),
        };
        let event = Event {
            revision: self.revision,
            key: shared,
            before,
            after,
        };
        Arc::make_mut(&mut self.events).push(event.clone());
        event
    }

    /// Returns the events after a resource version.
    pub(crate) fn history(&self, after: u64) -> &[Event] {
        let at = self.events.partition_point(|event| event.revision <= after);
        self.events.get(at..).unwrap_or_default()
    }

    /// Forgets the events up to a resource version.
    pub(crate) fn compact(&mut self, revision: u64) {
        let revision = revision.min(self.revision);
        self.compacted = self.compacted.max(revision);
        Arc::make_mut(&mut self.events).retain(|event| event.revision > revision);
    }

    /// Returns the objects of a kind as they were at a resource version.
    pub(crate) fn list_at(
        &self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> BTreeMap<Arc<Key>, Arc<Value>> {
        let listed = self.list(group, plural, namespace);
        let mut out: BTreeMap<_, _> = listed
            .map(|(key, value)| (Arc::clone(key), Arc::clone(value)))
            .collect();
        for event in self.history(revision).iter().rev() {
            let key = &event.key;
            let listed = key.group == group
                && key.plural == plural
                && namespace.is_none_or(|namespace| key.namespace == namespace);
            if listed {
                match &event.before {
                    Some(before) => out.insert(Arc::clone(key), Arc::clone(before)),
                    None => out.remove(key),
                };
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Key, Store};

    fn key(namespace: &str, name: &str) -> Key {
        Key {
            group: String::new(),
            plural: "configmaps".into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    #[test]
    fn lists_of_the_past_undo_later_writes() {
        let mut store = Store::default();
        store.write(&key("a", "x"), |_| Some(json!(1)));
        store.write(&key("b", "y"), |_| Some(json!(2)));
        let copy = store.clone();
        store.write(&key("a", "x"), |_| None);
        store.write(&key("a", "z"), |_| Some(json!(3)));
        assert_eq!(store.list("", "configmaps", Some("a")).count(), 1);
        assert_eq!(store.list("", "configmaps", None).count(), 2);
        let past = store.list_at("", "configmaps", None, 2);
        assert_eq!(
            past.keys().map(|key| key.name.as_str()).collect::<Vec<_>>(),
            ["x", "y"]
        );
        assert_eq!(copy.history(0).len(), 2);
        store.compact(3);
        assert_eq!((store.history(0).len(), store.compacted()), (1, 3));
    }
}
