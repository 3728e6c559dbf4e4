//! Stand-in for nodes: marks pods running and ready, or not, as a test requires.
//!
//! **It proves nothing about containers.** The plain control plane has no node, no scheduler and no kubelet: no
//! image is pulled, no command runs, no probe runs. The stand-in only writes the status that a kubelet would write,
//! so that the real controllers of the control plane count the pods and Deployments become available.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const MAX_CONCURRENT: usize = 8;

/// Worker that marks pods as running and ready until it is dropped.
#[derive(Debug)]
pub struct PodStandIn {
    worker: Worker,
    task: JoinHandle<()>,
}

impl PodStandIn {
    /// Starts the stand-in for all pods of the cluster. Must be called on a Tokio runtime.
    pub fn start(client: Client) -> Self {
        let worker = Worker {
            client: Pods(client),
            rules: Arc::default(),
        };
        let task = tokio::spawn(worker.clone().run());
        Self { worker, task }
    }

    /// Makes present and future pods of a workload (a Deployment, `StatefulSet` or the like, by its name) ready or
    /// not. Returns after marking the present ones.
    pub async fn set_ready(&self, namespace: &str, workload: &str, ready: bool) {
        let rule = Rule::Workload {
            namespace: namespace.to_owned(),
            name: workload.to_owned(),
        };
        self.change(rule, ready).await;
    }

    /// Makes pods with a container whose image contains `part` fail to pull it, or ends that. Returns after marking
    /// the present pods.
    pub async fn set_image_pulls(&self, part: &str, pulls: bool) {
        self.change(
            Rule::Image {
                contains: part.to_owned(),
            },
            pulls,
        )
        .await;
    }

    async fn change(&self, rule: Rule, ready: bool) {
        {
            let mut rules = self.worker.rules.lock().unwrap_or_else(PoisonError::into_inner);
            rules.retain(|other| *other != rule);
            if !ready {
                rules.push(rule);
            }
        }
        if let Err(error) = self.worker.mark_all().await {
            tracing::warn!("pod stand-in: {error:#}");
        }
    }
}

impl Drop for PodStandIn {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Rule that makes a pod not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Workload { namespace: String, name: String },
    Image { contains: String },
}

impl Rule {
    /// Returns the reason for which this rule makes the pod not ready.
    fn failure_reason(&self, pod: &Pod) -> Option<&'static str> {
        match self {
            Self::Workload { namespace, name } => {
                let is_of =
                    pod.namespace().as_ref() == Some(namespace) && workload(pod).as_ref() == Some(name);
                is_of.then_some("ContainersNotReady")
            }
            Self::Image { contains } => {
                let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
                let mut images = containers.filter_map(|container| container.image.as_ref());
                images
                    .any(|image| image.contains(contains))
                    .then_some("ImagePullBackOff")
            }
        }
    }
}

/// Client with a `Debug` implementation.
#[derive(Clone)]
struct Pods(Client);

impl std::fmt::Debug for Pods {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Pods")
    }
}

impl Pods {
    fn all(&self) -> Api<Pod> {
        Api::all(self.0.clone())
    }

    fn of(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.0.clone(), &pod.namespace().unwrap_or_default())
    }
}

#[derive(Clone, Debug)]
struct Worker {
    client: Pods,
    rules: Arc<Mutex<Vec<Rule>>>,
}

impl Worker {
    async fn run(self) {
        let pods = watcher(self.client.all(), watcher::Config::default())
            .default_backoff()
            .applied_objects();
        pods.for_each_concurrent(MAX_CONCURRENT, async |pod| {
            let marked = match pod {
                Ok(pod) => self.mark(&pod).await,
                Err(error) => Err(error.into()),
            };
            if let Err(error) = marked {
                tracing::debug!("pod stand-in: {error:#}");
            }
        })
        .await;
    }

    async fn mark_all(&self) -> Result<()> {
        let pods = self
            .client
            .all()
            .list(&ListParams::default())
            .await
            .context("cannot list pods")?;
        futures::stream::iter(pods.items.iter().map(Ok))
            .try_for_each_concurrent(MAX_CONCURRENT, async |pod| self.mark(pod).await)
            .await
    }

    async fn mark(&self, pod: &Pod) -> Result<()> {
        let api = self.client.of(pod);
        let name = pod.name_any();
        let marked = if pod.metadata.deletion_timestamp.is_some() {
            api.delete(&name, &DeleteParams::default().grace_period(0))
                .await
                .map(drop)
        } else if let Some(status) = self.new_status(pod) {
            api.patch_status(
                &name,
                &PatchParams::default(),
                &Patch::Merge(json!({"status": status})),
            )
            .await
            .map(drop)
        } else {
            return Ok(());
        };
        match marked {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            other => other.with_context(|| format!("cannot mark pod {name}")),
        }
    }

    /// Returns the status to write, unless the pod has it.
    fn new_status(&self, pod: &Pod) -> Option<Value> {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let failure = rules.iter().find_map(|rule| rule.failure_reason(pod));
        drop(rules);
        if runs_to_its_end(pod) && failure.is_none() {
            return (phase(pod) != "Succeeded").then(|| succeeded(pod));
        }
        let reason = ready_condition(pod);
        let wanted = failure.unwrap_or("StandIn");
        (reason.as_deref() != Some(wanted)).then(|| running(pod, failure))
    }
}

/// Returns the name of the workload that created the pod: a Deployment, not its `ReplicaSet`.
fn workload(pod: &Pod) -> Option<String> {
    let owner = pod
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true))?;
    let hash = pod.labels().get("pod-template-hash");
    let deployment = hash.and_then(|hash| owner.name.strip_suffix(hash)?.strip_suffix('-'));
    Some(deployment.unwrap_or(&owner.name).to_owned())
}

fn runs_to_its_end(pod: &Pod) -> bool {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    policy.is_some_and(|policy| policy != "Always")
}

fn phase(pod: &Pod) -> &str {
    pod.status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

/// Returns the reason of the pod's condition Ready.
fn ready_condition(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")?
        .reason
        .clone()
}

fn running(pod: &Pod, failure: Option<&str>) -> Value {
    let now = now();
    let ready = if failure.is_none() { "True" } else { "False" };
    let condition = |type_: &str, status: &str, reason: &str| {
        json!({"type": type_, "status": status, "reason": reason, "lastTransitionTime": now,
            "message": "written by the test's stand-in for a node"})
    };
    let reason = failure.unwrap_or("StandIn");
    let state = match failure {
        Some(reason) => json!({"waiting": {"reason": reason, "message": "the test says so"}}),
        None => json!({"running": {"startedAt": now}}),
    };
    json!({
        "phase": if failure == Some("ImagePullBackOff") { "Pending" } else { "Running" },
        "startTime": now,
        "conditions": [
            condition("PodScheduled", "True", "StandIn"),
            condition("Initialized", "True", "StandIn"),
            condition("ContainersReady", ready, reason),
            condition("Ready", ready, reason),
        ],
        "containerStatuses": containers(pod, failure.is_none(), &state),
    })
}

fn succeeded(pod: &Pod) -> Value {
    let now = now();
    let state =
        json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}});
    json!({"phase": "Succeeded", "startTime": now, "containerStatuses": containers(pod, false, &state)})
}

fn containers(pod: &Pod, ready: bool, state: &Value) -> Vec<Value> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let status = |container: &k8s_openapi::api::core::v1::Container| {
        json!({"name": container.name, "image": container.image.clone().unwrap_or_default(), "imageID": "",
            "ready": ready, "started": ready, "restartCount": 0, "state": state})
    };
    containers.map(status).collect()
}

fn now() -> Time {
    Time(jiff::Timestamp::now())
}
