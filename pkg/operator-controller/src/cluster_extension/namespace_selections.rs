//! Extensions that select the namespaces of their operators by labels, so that namespaces that come, go or change their labels trigger
//! them.
//!
//! The watch of the namespaces' metadata serves all extensions. An extension lists the namespaces that it selects in each of its passes,
//! so events only say when; a lost or late event leads to a needless pass at most.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::core::{Selector, SelectorExt as _};
use kube::{Resource, ResourceExt as _};
use parking_lot::Mutex;

/// Time without a change after which the selected namespaces are rolled out. Namespaces often come in bursts, and each set of them is a
/// revision.
const QUIET: SignedDuration = SignedDuration::from_secs(2);
/// Longest wait for such a time after the first change.
const LONGEST: SignedDuration = SignedDuration::from_secs(20);

/// First and last of the changes that are not rolled out yet.
type Changes = (Timestamp, Timestamp);

#[derive(Debug)]
struct Selection {
    selector: Selector,
    /// Namespaces of the last list; `None` before it.
    names: Option<BTreeSet<String>>,
    /// True if an event concerned the selection since the last list began.
    touched: bool,
    changes: Option<Changes>,
}

/// Selections by name of the extension.
#[derive(Debug, Default)]
pub(crate) struct NamespaceSelections(Mutex<HashMap<String, Selection>>);

impl NamespaceSelections {
    /// Starts to follow `selector` for `extension`; a list of the namespaces follows. A namespace that changes during the list makes the
    /// extension repeat it.
    pub(crate) fn begin(&self, extension: &str, selector: &Selector) {
        let mut all = self.0.lock();
        let known = all.get_mut(extension).filter(|known| known.selector == *selector);
        if let Some(known) = known {
            known.touched = false;
            return;
        }
        let selection = Selection {
            selector: selector.clone(),
            names: None,
            touched: false,
            changes: None,
        };
        all.insert(extension.to_owned(), selection);
    }

    /// Records the namespaces of the list that [`begin`](Self::begin) announced. Returns the time until they are worth a rollout, if they
    /// changed lately.
    pub(crate) fn listed(
        &self,
        extension: &str,
        names: BTreeSet<String>,
        now: Timestamp,
    ) -> Option<Duration> {
        let mut all = self.0.lock();
        let selection = all.get_mut(extension)?;
        let differs = selection.names.as_ref().is_some_and(|known| *known != names);
        selection.names = Some(names);
        selection.changes = changes(selection.changes, differs || selection.touched, now);
        let (first, last) = selection.changes?;
        let due = (last + QUIET).min(first + LONGEST);
        Duration::try_from(due.duration_since(now)).ok()
    }

    /// Stops following the namespaces of `extension`.
    pub(crate) fn remove(&self, extension: &str) {
        self.0.lock().remove(extension);
    }

    /// Returns the extensions whose selection `namespace` enters or leaves.
    pub(crate) fn moved_by(&self, namespace: &impl Resource) -> Vec<String> {
        let name = namespace.name_any();
        let stays = namespace.meta().deletion_timestamp.is_none();
        let mut all = self.0.lock();
        let moved = all.iter_mut().filter_map(|(extension, selection)| {
            let wanted = stays && selection.selector.matches(namespace.labels());
            let known = selection
                .names
                .as_ref()
                .is_some_and(|names| names.contains(&name));
            selection.touched |= wanted != known;
            (wanted != known).then(|| extension.clone())
        });
        moved.collect()
    }

    /// Returns all extensions with a selection: after a break of the watch, any namespace may be gone.
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }
}

/// Returns the changes that are not rolled out yet at `now`, with one at `now` if the namespaces `differ`; none if it is time to roll
/// them out.
fn changes(before: Option<Changes>, differ: bool, now: Timestamp) -> Option<Changes> {
    let (first, last) = match (before, differ) {
        (None, false) => return None,
        (None, true) => (now, now),
        (Some((first, _)), true) => (first, now),
        (Some(before), false) => before,
    };
    (now < last + QUIET && now < first + LONGEST).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::api::core::v1::Namespace;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
    use kube::core::PartialObjectMeta;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn namespace(name: &str, labels: &[(&str, &str)], going: bool) -> PartialObjectMeta<Namespace> {
        let label = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        PartialObjectMeta {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(labels.iter().map(label).collect::<BTreeMap<_, _>>()),
                deletion_timestamp: going.then(|| Time(at(0))),
                ..ObjectMeta::default()
            },
            ..PartialObjectMeta::default()
        }
    }

    fn selector() -> Selector {
        Selector::from_iter([("team", "a")])
    }

    #[test]
    fn only_namespaces_that_enter_or_leave_trigger_the_extension() {
        let all = NamespaceSelections::default();
        let ours = [("team", "a")];
        assert!(all.moved_by(&namespace("n", &ours, false)).is_empty());
        all.begin("x", &selector());
        all.listed("x", names(&["n", "going"]), at(0));
        for (namespace, moves) in [
            (namespace("n", &ours, false), false),
            (namespace("n", &[("team", "a"), ("stage", "b")], false), false),
            (namespace("n", &[("team", "b")], false), true),
            (namespace("n", &[], false), true),
            (namespace("new", &ours, false), true),
            (namespace("new", &[], false), false),
            (namespace("going", &ours, true), true),
            (namespace("other", &ours, true), false),
        ] {
            let moved = all.moved_by(&namespace);
            assert_eq!(moved, if moves { vec!["x"] } else { vec![] }, "{namespace:?}");
        }
        assert_eq!(all.all(), ["x"]);
        all.remove("x");
        assert!(all.moved_by(&namespace("new", &ours, false)).is_empty());
    }

    #[test]
    fn bursts_are_rolled_out_together_and_not_too_late() {
        let all = NamespaceSelections::default();
        let list = |second: i64, found: &[&str]| {
            all.begin("x", &selector());
            all.listed("x", names(found), at(second))
                .map(|left| left.as_secs())
        };
        assert_eq!(list(0, &["a"]), None, "the first list");
        assert_eq!(list(1, &["a", "b"]), Some(2));
        assert_eq!(list(2, &["a", "b"]), Some(1));
        assert_eq!(list(3, &["a", "b"]), None);
        assert_eq!(list(4, &["a", "b"]), None, "once");
        let mut found = vec!["a", "b"];
        for second in 10..30 {
            found.push(["c", "d"][usize::try_from(second % 2).unwrap()]);
            let waits = list(second, &found[..2 + usize::try_from(second % 3).unwrap()]);
            assert!(waits.is_some(), "{second}");
        }
        assert_eq!(list(30, &["z"]), None, "not for ever");
    }

    #[test]
    fn a_namespace_that_changes_during_the_list_is_not_missed() {
        let all = NamespaceSelections::default();
        all.begin("x", &selector());
        all.moved_by(&namespace("late", &[("team", "a")], false));
        assert_eq!(
            all.listed("x", names(&["a"]), at(0)),
            Some(Duration::from_secs(2))
        );
    }
}
