//! State of revisions that are gone, also of those whose finalizer somebody removed.
//!
//! Invariant: the queue drops the state, never while the revision is being reconciled, so that nothing comes back.

use std::collections::HashMap;

use kube::ResourceExt as _;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use olm_api::ClusterObjectSet;
use parking_lot::Mutex;
use tokio::sync::mpsc::UnboundedSender;

use super::{Context, decide};
use crate::present::Present;

/// Keys of a revision's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    name: String,
    uid: String,
    owner: String,
    number: i64,
}

/// Revisions by name that are gone and of which something may be kept.
#[derive(Debug, Default)]
pub(super) struct Gone(Mutex<HashMap<String, Vec<Kept>>>);

impl Context {
    /// Follows the watch of revisions: notes those that vanish, and has them looked at in their turn by `triggers`.
    pub(super) fn note_gone(
        &self,
        present: &mut Present<Kept>,
        event: &Event<ClusterObjectSet>,
        triggers: &UnboundedSender<ObjectRef<ClusterObjectSet>>,
    ) {
        // By uid: a name may come again at once.
        let change = present.take(event, |set| {
            let kept = Kept {
                name: set.name_any(),
                uid: set.uid().unwrap_or_default(),
                owner: decide::owner_name(set).to_owned(),
                number: set.spec.revision,
            };
            (kept.uid.clone(), kept)
        });
        for (_, kept) in change.gone {
            let trigger = ObjectRef::new(&kept.name);
            self.gone
                .0
                .lock()
                .entry(kept.name.clone())
                .or_default()
                .push(kept);
            // Without a receiver the process is stopping.
            let _ = triggers.send(trigger);
        }
    }

    /// Drops what is kept of revisions of this name that are gone.
    pub(super) fn sweep(&self, name: &str) {
        let gone = self.gone.0.lock().remove(name);
        for kept in gone.into_iter().flatten() {
            self.forget(&kept.uid);
            if let Some(observed) = &self.observed {
                observed.inventory.forget_objects(&kept.owner, kept.number);
            }
        }
    }
}
