//! Names of watched objects by the group that they belong to, such as the revisions of an extension: a lookup costs as much as the
//! group is large, however many objects there are.

use std::collections::{BTreeSet, HashMap};

use kube::runtime::watcher::Event;
use parking_lot::Mutex;

use crate::present::Present;

/// Members of groups. Follows a watch after its store: an object of the store is missing here only until the watch has passed on its
/// event, as if the watch were later.
#[derive(Debug, Default)]
pub(crate) struct Groups(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Group of each object, if any.
    present: Present<Option<String>>,
    members: HashMap<String, BTreeSet<String>>,
}

impl Groups {
    /// Follows an event. `read` returns the name of an object and its group, if any.
    pub(crate) fn follow<K>(&self, event: &Event<K>, read: impl Fn(&K) -> (String, Option<String>)) {
        // Once for each event: `read` may parse a part of the object.
        let object = match event {
            Event::InitApply(object) | Event::Apply(object) | Event::Delete(object) => Some(read(object)),
            Event::Init | Event::InitDone => None,
        };
        let mut inner = self.0.lock();
        let change = inner.present.take(event, |_| object.clone().unwrap_or_default());
        for (name, group) in change.gone {
            inner.remove(&name, group);
        }
        if let Some((name, group)) = object {
            inner.remove(&name, change.replaced.flatten());
            if let Some(group) = group.filter(|_| change.differs) {
                inner.members.entry(group).or_default().insert(name);
            }
        }
    }

    /// Returns the names of the members of a group, sorted.
    pub(crate) fn members(&self, group: &str) -> Vec<String> {
        let inner = self.0.lock();
        let members = inner.members.get(group);
        members.into_iter().flatten().cloned().collect()
    }

    /// Returns true if `holds` for a group that has a member.
    pub(crate) fn any(&self, holds: impl FnMut(&String) -> bool) -> bool {
        self.0.lock().members.keys().any(holds)
    }
}

impl Inner {
    fn remove(&mut self, name: &str, group: Option<String>) {
        let Some(group) = group else { return };
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
            for group in ["x", "y"] {
                assert_eq!(
                    groups.any(|name| name == group),
                    !groups.members(group).is_empty()
                );
            }
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
        follow(Event::Apply(("d", "x")));
        follow(Event::Delete(("d", "y")));
        let mut inner = groups.0.lock();
        assert!(
            inner.members.is_empty(),
            "also if the group changed with the deletion"
        );
        let left = inner
            .present
            .take(&Event::<()>::InitDone, |()| (String::new(), None));
        assert_eq!(left.gone, [], "nothing is remembered");
    }
}
