//! Names and objects that the events of a list concern, held until the list is complete.
//!
//! A list comes in pages, and its store shows none of it before the last page. A reconcile of an object of an early page would read the
//! former state, and nothing would trigger it again.

use std::collections::BTreeSet;

use futures::{Stream, StreamExt as _, stream};
use kube::runtime::watcher::Event;

use crate::watched::Watched;

/// Names that events of a list concern.
#[derive(Debug, Default)]
pub(crate) struct UntilListed(BTreeSet<String>);

impl UntilListed {
    /// Returns the names that can be queued after `event`, which concerns `names`.
    ///
    /// Names of a list that was interrupted are kept: the next list may not name them again.
    pub(crate) fn take<K>(
        &mut self,
        event: &Event<K>,
        names: impl IntoIterator<Item = String>,
    ) -> Vec<String> {
        let mut now = Vec::new();
        match event {
            Event::Init | Event::InitApply(_) => self.0.extend(names),
            Event::InitDone => {
                self.0.extend(names);
                now.extend(std::mem::take(&mut self.0));
            }
            Event::Apply(_) | Event::Delete(_) => now.extend(names),
        }
        now
    }
}

/// Returns the objects that events of a watch touch. Those of a list follow it, with their metadata alone.
pub(crate) fn touched_objects<K, E>(
    events: impl Stream<Item = Result<Event<Watched<K>>, E>>,
) -> impl Stream<Item = Result<Watched<K>, E>> {
    let mut listed = Vec::new();
    events.flat_map(move |event| {
        let touched = match event {
            Ok(Event::Apply(object) | Event::Delete(object)) => vec![Ok(object)],
            Ok(Event::Init) => {
                listed.clear();
                Vec::new()
            }
            Ok(Event::InitApply(object)) => {
                listed.push(Ok(object.without_content()));
                Vec::new()
            }
            Ok(Event::InitDone) => std::mem::take(&mut listed),
            Err(error) => vec![Err(error)],
        };
        stream::iter(touched)
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::FutureExt as _;
    use serde_json::json;

    use super::*;
    use crate::watched::WatchedExtension;

    fn object(name: &str) -> WatchedExtension {
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"a": 1}})).unwrap()
    }

    #[test]
    fn objects_of_a_list_follow_its_last_page() {
        let (events, queue) = futures::channel::mpsc::unbounded();
        let mut touched = Box::pin(touched_objects(queue));
        let mut see = |event: Event<WatchedExtension>| -> Vec<String> {
            events.unbounded_send(Ok::<_, Infallible>(event)).unwrap();
            let ready = std::iter::from_fn(|| touched.next().now_or_never().flatten());
            ready
                .map(|object| object.unwrap().metadata.name.unwrap())
                .collect()
        };
        let none: [&str; 0] = [];
        assert_eq!(see(Event::Init), none);
        assert_eq!(see(Event::InitApply(object("interrupted"))), none);
        assert_eq!(see(Event::Init), none);
        assert_eq!(see(Event::InitApply(object("a"))), none);
        assert_eq!(see(Event::InitApply(object("b"))), none);
        assert_eq!(see(Event::InitDone), ["a", "b"]);
        assert_eq!(see(Event::Apply(object("c"))), ["c"]);
        assert_eq!(see(Event::Delete(object("c"))), ["c"]);
    }

    #[test]
    fn names_of_a_list_follow_its_last_page() {
        let mut held = UntilListed::default();
        let mut see = |event: Event<()>, names: &[&str]| -> Vec<String> {
            held.take(&event, names.iter().copied().map(str::to_owned))
        };
        let none: [&str; 0] = [];
        assert_eq!(see(Event::InitApply(()), &["b"]), none);
        assert_eq!(see(Event::Init, &[]), none);
        assert_eq!(see(Event::InitApply(()), &["a", "b"]), none);
        assert_eq!(see(Event::InitDone, &["gone"]), ["a", "b", "gone"]);
        assert_eq!(see(Event::InitDone, &[]), none);
        assert_eq!(see(Event::Apply(()), &["c"]), ["c"]);
        assert_eq!(see(Event::Delete(()), &["c"]), ["c"]);
    }
}
