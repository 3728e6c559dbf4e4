//! Task that reads the pods of one workload.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, PostParams};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::{self, Event};
use olm_api::ClusterObjectSet;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{MAX_PODS, State};

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

/// Task that reads the pods of one workload.
pub(super) struct Reader {
    pub(super) api: Api<Pod>,
    /// Reviews of the rights to read pods, if they are to be asked for.
    pub(super) reviews: Option<Api<SelfSubjectAccessReview>>,
    pub(super) selector: String,
    pub(super) state: Arc<Mutex<State>>,
    pub(super) triggers: mpsc::Sender<ObjectRef<ClusterObjectSet>>,
    pub(super) revision: String,
}

/// The receiver of triggers was dropped.
struct ReceiverDropped;

impl Reader {
    /// Runs until the receiver of triggers is dropped. Without a slot, lists at an interval.
    pub(super) async fn run(self, slot: Option<OwnedSemaphorePermit>) {
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
pub(super) fn slim(mut pod: Pod) -> Pod {
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
