//! Objects that a watch reported, to detect those that vanish: also while the watch is down, and without their finalizers.

use std::collections::{HashMap, HashSet};

use kube::runtime::watcher::Event;

/// Known facts about every existing object, by a key of the caller's choice.
#[derive(Debug)]
pub(crate) struct Present<T> {
    known: HashMap<String, T>,
    /// Keys of a list that is not complete yet.
    listed: HashSet<String>,
}

impl<T> Default for Present<T> {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            listed: HashSet::new(),
        }
    }
}

/// Effect of a watch event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change<T> {
    /// True if an object appeared or changed.
    pub differs: bool,
    /// Former facts of an object that changed, also if it is gone now.
    pub replaced: Option<T>,
    /// Objects that are gone.
    pub gone: Vec<(String, T)>,
}

impl<T: PartialEq> Present<T> {
    /// Applies a watch event. `read` returns the key of an object and its facts.
    pub(crate) fn take<K>(&mut self, event: &Event<K>, read: impl Fn(&K) -> (String, T)) -> Change<T> {
        let mut change = Change {
            differs: false,
            replaced: None,
            gone: Vec::new(),
        };
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                let (key, value) = read(object);
                self.listed.insert(key.clone());
                (change.differs, change.replaced) = self.put(key, value);
            }
            Event::Apply(object) => {
                let (key, value) = read(object);
                (change.differs, change.replaced) = self.put(key, value);
            }
            Event::Delete(object) => {
                let (key, value) = read(object);
                change.replaced = self.known.remove(&key).filter(|before| *before != value);
                change.gone.push((key, value));
            }
            // Objects that were deleted while the watch was down.
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                change.gone = self.known.extract_if(|key, _| !listed.contains(key)).collect();
            }
        }
        change
    }

    fn put(&mut self, key: String, value: T) -> (bool, Option<T>) {
        let differs = self.known.get(&key) != Some(&value);
        let before = self.known.insert(key, value);
        (differs, before.filter(|_| differs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_vanishes_is_noticed_also_while_the_watch_is_down() {
        let mut present = Present::default();
        let mut take = |event: Event<(&str, u32)>| {
            let change = present.take(&event, |(name, value)| ((*name).to_owned(), *value));
            (change.differs, change.gone)
        };
        let gone = |name: &str, value| vec![(name.to_owned(), value)];
        assert_eq!(take(Event::Init), (false, vec![]));
        assert_eq!(take(Event::InitApply(("a", 1))), (true, vec![]));
        assert_eq!(take(Event::InitApply(("b", 1))), (true, vec![]));
        assert_eq!(take(Event::InitDone), (false, vec![]));
        assert_eq!(take(Event::Apply(("a", 1))), (false, vec![]));
        assert_eq!(take(Event::Apply(("a", 2))), (true, vec![]));
        take(Event::Init);
        assert_eq!(take(Event::InitApply(("b", 1))), (false, vec![]));
        assert_eq!(take(Event::InitDone), (false, gone("a", 2)));
        assert_eq!(take(Event::Delete(("b", 1))), (false, gone("b", 1)));
        take(Event::Init);
        assert_eq!(take(Event::InitDone), (false, vec![]), "told once");
        let replaced = [1, 1, 2].map(|value| {
            let event = Event::Apply(("c", value));
            present
                .take(&event, |(name, value)| ((*name).to_owned(), *value))
                .replaced
        });
        assert_eq!(replaced, [None, None, Some(1)]);
    }
}
