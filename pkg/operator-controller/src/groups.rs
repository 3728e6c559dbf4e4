//! Names of watched objects by the group that they belong to, such as the revisions of an extension: a lookup costs as much as the
//! group is large, however many objects there are.

use std::collections::{BTreeSet, HashMap, HashSet};

use kube::runtime::watcher::Event;
use parking_lot::Mutex;

/// Members of groups. Follows a watch after its store: an object of the store is missing here only until the watch has passed on its
/// event, as if the watch were later.
#[derive(Debug, Default)]
pub(crate) struct Groups(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Group of each object.
    group_of: HashMap<String, String>,
    members: HashMap<String, BTreeSet<String>>,
    /// Objects of a list that is not complete yet.
    listed: HashSet<String>,
}

impl Groups {
    /// Follows an event. `read` returns the name of an object and its group, if any.
    pub(crate) fn follow<K>(&self, event: &Event<K>, read: impl Fn(&K) -> (String, Option<String>)) {
        let mut inner = self.0.lock();
        match event {
            Event::Init => inner.listed.clear(),
            Event::InitApply(object) => {
                let (name, group) = read(object);
                inner.listed.insert(name.clone());
                inner.put(name, group);
            }
            Event::Apply(object) => {
                let (name, group) = read(object);
                inner.put(name, group);
            }
            Event::Delete(object) => inner.remove(&read(object).0),
            Event::InitDone => {
                let listed = std::mem::take(&mut inner.listed);
                let gone: Vec<String> = inner
                    .group_of
                    .keys()
                    .filter(|name| !listed.contains(*name))
                    .cloned()
                    .collect();
                for name in gone {
                    inner.remove(&name);
                }
            }
        }
    }

    /// Returns the names of the members of a group, sorted.
    pub(crate) fn members(&self, group: &str) -> Vec<String> {
        let inner = self.0.lock();
        let members = inner.members.get(group);
        members.into_iter().flatten().cloned().collect()
    }
}

impl Inner {
    fn put(&mut self, name: String, group: Option<String>) {
        if self.group_of.get(&name) == group.as_ref() {
            return;
        }
        self.remove(&name);
        if let Some(group) = group {
            self.members
                .entry(group.clone())
                .or_default()
                .insert(name.clone());
            self.group_of.insert(name, group);
        }
    }

    fn remove(&mut self, name: &str) {
        let Some(group) = self.group_of.remove(name) else {
            return;
        };
        if let Some(members) = self.members.get_mut(&group) {
            members.remove(name);
            if members.is_empty() {
                self.members.remove(&group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_move_and_go_also_while_the_watch_is_down() {
        let groups = Groups::default();
        let follow = |event: Event<(&str, &str)>| {
            groups.follow(&event, |(name, group)| {
                (
                    (*name).to_owned(),
                    (!group.is_empty()).then(|| (*group).to_owned()),
                )
            });
            (groups.members("x"), groups.members("y"))
        };
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        follow(Event::Init);
        assert_eq!(follow(Event::InitApply(("a", "x"))), (names(&["a"]), names(&[])));
        follow(Event::InitApply(("b", "y")));
        assert_eq!(follow(Event::InitDone), (names(&["a"]), names(&["b"])));
        assert_eq!(follow(Event::Apply(("b", "x"))), (names(&["a", "b"]), names(&[])));
        assert_eq!(follow(Event::Apply(("a", ""))), (names(&["b"]), names(&[])));
        follow(Event::Apply(("c", "y")));
        follow(Event::Init);
        assert_eq!(
            follow(Event::InitApply(("c", "y"))),
            (names(&["b"]), names(&["c"]))
        );
        assert_eq!(follow(Event::InitDone), (names(&[]), names(&["c"])));
        assert_eq!(follow(Event::Delete(("c", "y"))), (names(&[]), names(&[])));
        assert!(groups.0.lock().group_of.is_empty() && groups.0.lock().members.is_empty());
    }
}
