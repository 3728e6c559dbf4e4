//! Measures the times at which objects change, by watches.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Kind of watched objects: group, version and kind.
pub(crate) type Kind = (&'static str, &'static str, &'static str);

pub(crate) const POD: Kind = ("", "v1", "Pod");
pub(crate) const DEPLOYMENT: Kind = ("apps", "v1", "Deployment");
pub(crate) const LEASE: Kind = ("coordination.k8s.io", "v1", "Lease");
pub(crate) const EXTENSION: Kind = ("olm.operatorframework.io", "v1", "ClusterExtension");

/// First observation of an object that meets a condition.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(crate) at: Instant,
    pub(crate) object: Value,
}

/// Watch that waits for the first object that meets a condition.
pub(crate) struct Watch {
    what: &'static str,
    task: JoinHandle<Option<Observation>>,
}

impl Watch {
    /// Starts a watch on the objects of a namespace; an empty namespace stands for cluster-scoped objects. Returns when the watch
    /// has read the present objects, so that it misses no later change.
    pub(crate) async fn start(
        client: &Client,
        what: &'static str,
        (group, version, kind): Kind,
        namespace: &str,
        fits: impl Fn(&Value) -> bool + Send + 'static,
    ) -> Self {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = if namespace.is_empty() {
            Api::all_with(client.clone(), &resource)
        } else {
            Api::namespaced_with(client.clone(), namespace, &resource)
        };
        let (listed, is_listed) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut listed = Some(listed);
            let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
            while let Some(event) = events.next().await {
                let object = match event {
                    Ok(Event::InitApply(object) | Event::Apply(object)) => object,
                    Ok(Event::InitDone) => {
                        listed.take().map(|listed| listed.send(()));
                        continue;
                    }
                    // An interrupted watch is restarted.
                    Ok(Event::Init | Event::Delete(_)) | Err(_) => continue,
                };
                let object = serde_json::to_value(object).ok()?;
                if fits(&object) {
                    let at = Instant::now();
                    return Some(Observation { at, object });
                }
            }
            None
        });
        // The sender is dropped early if a present object meets the condition.
        let _ = is_listed.await;
        Self { what, task }
    }

    /// Waits for the first observation, for `limit` at most.
    ///
    /// # Errors
    /// No object meets the condition within the limit, or the watch ends before.
    pub(crate) async fn seen(mut self, limit: Duration) -> Result<Observation> {
        let ended = tokio::time::timeout(limit, &mut self.task).await;
        self.task.abort();
        let ended = ended.with_context(|| format!("not seen within {limit:?}: {}", self.what))?;
        ended?.with_context(|| format!("the watch ended before this was seen: {}", self.what))
    }
}
