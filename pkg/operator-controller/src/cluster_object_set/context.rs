//! State and clients of the ClusterObjectSet controller.

use std::sync::Arc;

use kube::Client;
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;
use olm_api::{ClusterObjectSet, CustomResourcePolicy};
use olm_applier::engine::Engine;
use olm_applier::watch::Watches;
use olm_decide::object_set as decide;
use olm_runtime::backoff::Backoff;
use olm_runtime::events::Events;
use olm_runtime::metrics;

use super::content::ContentCache;
use super::gone::GoneRevisions;
use super::written::Written;
use crate::ServiceAccountPolicy;
use crate::groups::Groups;
use crate::inventory::Inventory;
use crate::metrics::Metrics;
use crate::watched::WatchedRevision;

/// Policies of the controller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policies {
    /// Rights with which a revision is applied and deleted.
    pub(super) accounts: ServiceAccountPolicy,
    /// Fate of CRDs that hold custom resources, unless the revision names another.
    pub(super) custom_resources: CustomResourcePolicy,
}

/// State and clients of the controller.
pub(super) struct Context {
    pub(super) client: Client,
    pub(super) engine: Engine,
    pub(super) watches: Arc<Watches>,
    pub(super) store: Store<WatchedRevision>,
    /// Names of the revisions of the store, by the extension that their label names.
    pub(super) by_extension: Groups,
    pub(super) backoff: Backoff<String>,
    pub(super) events: Events,
    pub(super) system_namespace: String,
    pub(super) policies: Policies,
    pub(super) contents: ContentCache,
    pub(super) written: Written,
    pub(super) gone: GoneRevisions,
    pub(super) metrics: metrics::ControllerMetrics,
    pub(super) recorder: Option<Recorder>,
}

impl Context {
    /// Returns the revisions with the same owner label, `set` among them; none without the label. Their objects and probes are left out.
    pub(super) fn family(&self, set: &ClusterObjectSet) -> Vec<Arc<ClusterObjectSet>> {
        let names = self.by_extension.members(decide::owner_name(set)).into_iter();
        let known = names.filter_map(|name| self.store.get(&ObjectRef::new(&name)));
        known.filter_map(|set| set.decode_head().map(Arc::new)).collect()
    }

    /// Drops the state of revisions of this name that are gone.
    pub(super) fn sweep(&self, name: &str) {
        for key in self.gone.remove(name) {
            self.forget(&key.uid);
            self.backoff.clear(&name.to_owned());
            self.written.forget(&key.uid);
            if let Some(recorder) = &self.recorder {
                recorder.inventory.forget_objects(&key.owner, key.number);
            }
        }
    }

    /// Drops the state of the revision with this uid.
    pub(super) fn forget(&self, uid: &str) {
        self.engine.forget(uid);
        self.contents.remove(uid);
    }
}

/// Follower of the events of a watch.
type Follow = dyn FnMut(&Event<WatchedRevision>) + Send;

/// The watch of revisions, which other controllers share.
pub(crate) struct SharedWatch {
    /// Write end of the store, which has revisions that cannot be read too.
    pub(crate) writer: Writer<WatchedRevision>,
    /// Follows the events after the store.
    pub(crate) follow: Box<Follow>,
}

impl Default for SharedWatch {
    fn default() -> Self {
        Self {
            writer: Writer::new(()),
            follow: Box::new(|_| ()),
        }
    }
}

/// Receivers of facts about the revisions.
pub(crate) struct Recorder {
    pub(crate) inventory: Inventory,
    pub(crate) metrics: Metrics,
}

impl Recorder {
    /// Records the number of objects that the revision keeps in repair.
    pub(super) fn record(&self, set: &ClusterObjectSet) {
        if decide::goal(set) == decide::Goal::Applied && !decide::owner_name(set).is_empty() {
            let count = set.spec.object_count();
            self.inventory
                .note_objects(decide::owner_name(set), set.spec.revision, count);
        }
    }
}
