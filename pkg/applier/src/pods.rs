//! Watches of the pods of workloads that are not available.
//!
//! A watch is restricted to the namespace and the label selector of one workload. It starts when a revision finds the
//! workload unavailable, and ends when the workload is available or the revision is gone: a cluster at rest has none.
//! Beyond [`MAX_WATCHES`] workloads, the pods are listed at an interval instead. If pods may not be read, nothing is
//! known about them, and the revision rolls out all the same.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::{self, Event};
use olm_api::ClusterObjectSet;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::ownership::Identity;
use crate::workload::{Diagnosis, Workload};

/// Maximum number of workloads of a revision whose pods are read.
const MAX_WORKLOADS: usize = 4;
/// Maximum number of watches. Each holds a connection.
const MAX_WATCHES: usize = 64;
/// Maximum number of pods of a workload that are kept.
const MAX_PODS: usize = 100;
/// Page size of lists.
const PAGE: u32 = 100;
/// Interval between two lists of a workload beyond [`MAX_WATCHES`].
const LIST_INTERVAL: Duration = Duration::from_secs(15);
/// Interval at which the age of pods is judged again without an event. Sends no request.
const TICK: Duration = Duration::from_secs(10);
/// Delays before a failed read is repeated: the first, which doubles, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// Timeout of a list.
const TIMEOUT: Duration = Duration::from_secs(30);

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
        let new = Diagnosis::of(&self.workload, self.pods.values(), Timestamp::now()).steady(&self.diagnosis);
        let changed = new != self.diagnosis;
        self.diagnosis = new;
        changed
    }
}

/// Number of running watches, shared with their tasks.
#[derive(Clone, Debug, Default)]
struct Slots(Arc<AtomicUsize>);

/// One of [`MAX_WATCHES`]; free again when dropped.
#[derive(Debug)]
struct Slot(Slots);

impl Slots {
    fn take(&self) -> Option<Slot> {
        let more = |count: usize| (count < MAX_WATCHES).then(|| count.saturating_add(1));
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.is_ok().then(|| Slot(self.clone()))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
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
    slots: Slots,
    revisions: Mutex<HashMap<String, Vec<PodWatch>>>,
}

impl Pods {
    /// Returns an empty set of watches. A change of a diagnosis triggers the revision.
    pub(crate) fn new(triggers: mpsc::Sender<ObjectRef<ClusterObjectSet>>) -> Self {
        Self {
            triggers,
            slots: Slots::default(),
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
        let task = tokio::spawn(reader.run(self.slots.take()));
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

/// Task that reads the pods of one workload.
struct Reader {
    api: Api<Pod>,
    /// Reviews of the rights to read pods, if they are to be asked for.
    reviews: Option<Api<SelfSubjectAccessReview>>,
    selector: String,
    state: Arc<Mutex<State>>,
    triggers: mpsc::Sender<ObjectRef<ClusterObjectSet>>,
    revision: String,
}

/// The receiver of triggers was dropped.
struct ReceiverDropped;

impl Reader {
    /// Runs until the receiver of triggers is dropped. Without a slot, lists at an interval.
    async fn run(self, slot: Option<Slot>) {
        let (first, longest) = RETRY;
        let mut pause = first;
        loop {
            if self.may_read(slot.is_some()).await {
                let done = match &slot {
                    Some(_) => self.watch(&mut pause).await,
                    None => self.list(&mut pause).await,
                };
                if done.is_err() {
                    return;
                }
            } else {
                pause = longest;
            }
            sleep(pause).await;
            pause = (pause * 2).min(longest);
        }
    }

    /// Asks the API server for the rights to list, and with `watch` to watch, the pods. A failed review counts as a right:
    /// the read itself then decides.
    async fn may_read(&self, watch: bool) -> bool {
        let Some(reviews) = &self.reviews else {
            return true;
        };
        let namespace = self.state.lock().workload.namespace.clone();
        for verb in ["list", "watch"].into_iter().take(if watch { 2 } else { 1 }) {
            let review = SelfSubjectAccessReview {
                spec: SelfSubjectAccessReviewSpec {
                    resource_attributes: Some(ResourceAttributes {
                        namespace: Some(namespace.clone()),
                        verb: Some(verb.to_owned()),
                        version: Some("v1".to_owned()),
                        resource: Some("pods".to_owned()),
                        ..ResourceAttributes::default()
                    }),
                    ..SelfSubjectAccessReviewSpec::default()
                },
                ..SelfSubjectAccessReview::default()
            };
            let reviewed = timeout(TIMEOUT, reviews.create(&PostParams::default(), &review)).await;
            if let Ok(Ok(review)) = reviewed
                && review.status.is_some_and(|status| !status.allowed)
            {
                tracing::debug!(namespace, verb, "the pods of a workload may not be read");
                return false;
            }
        }
        true
    }

    /// Lists and watches until an error.
    async fn watch(&self, pause: &mut Duration) -> Result<(), ReceiverDropped> {
        let config = watcher::Config::default().labels(&self.selector).page_size(PAGE);
        let mut events = pin!(watcher::watcher(self.api.clone(), config));
        let mut listed: Option<HashMap<String, Pod>> = None;
        let mut tick = Instant::now() + TICK;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(Ok(event)) => {
                        // Comes before the list, which may fail.
                        if !matches!(event, Event::Init) {
                            *pause = RETRY.0;
                        }
                        self.record(event, &mut listed);
                    }
                    Some(Err(error)) => return self.failed(&error, is_forbidden(&error), pause).await,
                    None => return Ok(()),
                },
                () = sleep_until(tick) => tick = Instant::now() + TICK,
            }
            // An incomplete list would hide pods.
            if listed.is_none() {
                self.refresh().await?;
            }
        }
    }

    /// Lists once, the first page only.
    async fn list(&self, pause: &mut Duration) -> Result<(), ReceiverDropped> {
        let params = ListParams::default()
            .labels(&self.selector)
            .limit(PAGE)
            .match_any();
        match timeout(TIMEOUT, self.api.list(&params)).await {
            Ok(Ok(list)) => {
                let pods = list.items.into_iter().map(|pod| (uid(&pod), slim(pod)));
                self.state.lock().pods = pods.collect();
                *pause = LIST_INTERVAL;
                self.refresh().await
            }
            Ok(Err(error)) => {
                let forbidden = matches!(&error, kube::Error::Api(status) if status.is_forbidden());
                self.failed(&error, forbidden, pause).await
            }
            Err(_) => Ok(()),
        }
    }

    fn record(&self, event: Event<Pod>, listed: &mut Option<HashMap<String, Pod>>) {
        let insert = |pods: &mut HashMap<String, Pod>, pod: Pod| {
            let uid = uid(&pod);
            if pods.len() < MAX_PODS || pods.contains_key(&uid) {
                pods.insert(uid, slim(pod));
            }
        };
        match (event, listed.as_mut()) {
            (Event::Init, _) => *listed = Some(HashMap::new()),
            (Event::InitApply(pod), Some(pods)) => insert(pods, pod),
            (Event::InitDone, _) => self.state.lock().pods = listed.take().unwrap_or_default(),
            (Event::Apply(pod) | Event::InitApply(pod), _) => insert(&mut self.state.lock().pods, pod),
            (Event::Delete(pod), _) => {
                self.state.lock().pods.remove(&uid(&pod));
            }
        }
    }

    /// Forgets the pods if they may not be read, and asks again only after the longest delay.
    async fn failed(
        &self,
        error: &(dyn std::error::Error + Sync),
        forbidden: bool,
        pause: &mut Duration,
    ) -> Result<(), ReceiverDropped> {
        let workload = self.state.lock().workload.name.clone();
        tracing::debug!(workload, %error, "the pods of a workload cannot be read; retrying");
        if forbidden {
            self.state.lock().pods.clear();
            *pause = RETRY.1;
        }
        self.refresh().await
    }

    async fn refresh(&self) -> Result<(), ReceiverDropped> {
        let changed = self.state.lock().refresh();
        if changed {
            let sent = self.triggers.send(ObjectRef::new(&self.revision)).await;
            return sent.map_err(|_| ReceiverDropped);
        }
        Ok(())
    }
}

fn is_forbidden(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchError, WatchFailed, WatchStartFailed};
    match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status))
        | WatchError(status) => status.is_forbidden(),
        _ => false,
    }
}

fn uid(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap_or_default()
}

/// Drops the parts of a pod that a diagnosis does not read.
fn slim(mut pod: Pod) -> Pod {
    pod.metadata.managed_fields = None;
    pod.metadata.annotations = None;
    if let Some(spec) = &mut pod.spec {
        spec.volumes = None;
        spec.init_containers = None;
        for container in &mut spec.containers {
            container.env = None;
            container.args = None;
            container.command = None;
            container.volume_mounts = None;
        }
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn workload(name: &str) -> Workload {
        Workload {
            kind: "Deployment".to_owned(),
            namespace: "n".to_owned(),
            name: name.to_owned(),
            selector: format!("app={name}"),
            outdated: false,
            failure: None,
        }
    }

    fn client() -> Client {
        let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, std::io::Error>>()
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn watches_follow_the_unavailable_workloads() {
        let (triggers, _receiver) = mpsc::channel(1);
        let pods = Pods::new(triggers);
        let revision = Identity {
            name: "kite-1".to_owned(),
            uid: "u".to_owned(),
            number: 1,
            owner_name: "kite".to_owned(),
            siblings: Vec::new(),
        };
        let (one, mut two) = (workload("one"), workload("two"));
        let both = [one.clone(), two.clone()];
        assert_eq!(pods.keep("u", &both), both);
        for workload in both {
            pods.watch(&revision, workload, &client(), false);
        }
        assert_eq!(pods.slots.0.load(Ordering::Relaxed), 2);
        assert_eq!(pods.sentence("u"), None);
        two.failure = Some(("FailedCreate".to_owned(), "quota".to_owned()));
        assert_eq!(pods.keep("u", &[two]), []);
        assert_eq!(
            pods.sentence("u").unwrap(),
            "Deployment n/two is not available: its pods cannot be created: FailedCreate: \"quota\"."
        );
        pods.release("u");
        assert_eq!(pods.sentence("u"), None);
        // An aborted task is dropped by the runtime.
        while pods.slots.0.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
        let slots: Vec<_> = std::iter::from_fn(|| pods.slots.take()).collect();
        assert_eq!(slots.len(), MAX_WATCHES);
    }

    #[test]
    fn kept_pods_have_what_a_diagnosis_reads() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "labels": {"a": "b"}, "annotations": {"c": "d"}, "managedFields": []},
            "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i", "env": [{"name": "SECRET", "value": "x"}],
                "readinessProbe": {"tcpSocket": {"port": 1}}}]},
        }))
        .unwrap();
        assert_eq!(
            serde_json::to_value(slim(pod)).unwrap(),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}},
                "spec": {"nodeName": "node", "containers": [{"name": "c", "image": "i",
                    "readinessProbe": {"tcpSocket": {"port": 1}}}]}})
        );
    }
}
