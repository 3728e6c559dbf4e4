//! Watches of the pods of workloads that are not available.
//!
//! A watch is restricted to the namespace and the label selector of one workload. It starts when a revision finds the
//! workload unavailable, and ends when the workload is available or the revision is gone: a cluster at rest has none.
//! Beyond [`MAX_WATCHES`] workloads, the pods are listed at an interval instead. If pods may not be read, nothing is
//! known about them, and the revision rolls out all the same.

mod reader;

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::Api;
use kube::runtime::reflector::ObjectRef;
use olm_api::ClusterObjectSet;
use olm_runtime::clock;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc};

use crate::ownership::Identity;
use crate::workload::{Diagnosis, Workload};
use reader::Reader;

/// Maximum number of workloads of a revision whose pods are read.
const MAX_WORKLOADS: usize = 4;
/// Maximum number of watches. Each holds a connection.
const MAX_WATCHES: usize = 64;
/// Maximum number of pods of a workload that are kept.
const MAX_PODS: usize = 100;

/// State that a watch and its task share.
#[derive(Debug)]
struct State {
    workload: Workload,
    pods: HashMap<String, Pod>,
    diagnosis: Diagnosis,
}

impl State {
    /// Reads the pods again. Returns true if the diagnosis changed.
    fn refresh(&mut self) -> bool {
        let new = Diagnosis::of(&self.workload, self.pods.values(), clock::now()).steady(&self.diagnosis);
        let changed = new != self.diagnosis;
        self.diagnosis = new;
        changed
    }
}

#[derive(Debug)]
struct PodWatch {
    state: Arc<Mutex<State>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for PodWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Pods of the unavailable workloads, by uid of the revision.
#[derive(Debug)]
pub(crate) struct Pods {
    triggers: mpsc::Sender<ObjectRef<ClusterObjectSet>>,
    /// A permit for each of [`MAX_WATCHES`]; its task holds it.
    slots: Arc<Semaphore>,
    revisions: Mutex<HashMap<String, Vec<PodWatch>>>,
}

impl Pods {
    /// Returns an empty set of watches. A change of a diagnosis triggers the revision.
    pub(crate) fn new(triggers: mpsc::Sender<ObjectRef<ClusterObjectSet>>) -> Self {
        Self {
            triggers,
            slots: Arc::new(Semaphore::new(MAX_WATCHES)),
            revisions: Mutex::default(),
        }
    }

    /// Replaces the unavailable workloads of the revision: keeps the watches of those in `workloads` and ends the others.
    /// Returns the workloads without a watch.
    pub(crate) fn keep(&self, uid: &str, workloads: &[Workload]) -> Vec<Workload> {
        let mut revisions = self.revisions.lock();
        let mut missing: Vec<Workload> = workloads.iter().take(MAX_WORKLOADS).cloned().collect();
        let Some(watches) = revisions.get_mut(uid) else {
            return missing;
        };
        watches.retain(|watch| {
            let mut state = watch.state.lock();
            let Some(place) = missing.iter().position(|new| new.same_pods(&state.workload)) else {
                return false;
            };
            state.workload = missing.swap_remove(place);
            state.refresh();
            true
        });
        if watches.is_empty() {
            revisions.remove(uid);
        }
        missing
    }

    /// Watches the pods of a workload on behalf of the revision, with the rights of `client`. With `review`, the API server
    /// is asked for the rights first, so that an account without them causes no refused requests.
    pub(crate) fn watch(&self, revision: &Identity, workload: Workload, client: &Client, review: bool) {
        let api: Api<Pod> = Api::namespaced(client.clone(), &workload.namespace);
        let selector = workload.selector.clone();
        let mut state = State {
            workload,
            pods: HashMap::new(),
            diagnosis: Diagnosis::default(),
        };
        state.refresh();
        let state = Arc::new(Mutex::new(state));
        let reader = Reader {
            api,
            reviews: review.then(|| Api::all(client.clone())),
            selector,
            state: Arc::clone(&state),
            triggers: self.triggers.clone(),
            revision: revision.name.clone(),
        };
        let task = tokio::spawn(reader.run(self.slots.clone().try_acquire_owned().ok()));
        let mut revisions = self.revisions.lock();
        let watches = revisions.entry(revision.uid.clone()).or_default();
        watches.push(PodWatch { state, task });
    }

    /// Returns the worst problem of the revision's unavailable workloads, as a sentence.
    pub(crate) fn sentence(&self, uid: &str) -> Option<String> {
        let revisions = self.revisions.lock();
        let known = revisions.get(uid)?.iter().map(|watch| {
            let state = watch.state.lock();
            (state.workload.clone(), state.diagnosis.clone())
        });
        let mut known: Vec<(Workload, Diagnosis)> = known.collect();
        known.sort_by(|(a, _), (b, _)| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
        let (workload, diagnosis) =
            Diagnosis::worst(known.iter().map(|(workload, found)| (workload, found)))?;
        diagnosis.sentence(workload)
    }

    /// Ends the watches of the revision.
    pub(crate) fn release(&self, uid: &str) {
        self.revisions.lock().remove(uid);
    }
}

#[cfg(test)]
mod tests;
