//! Problems of a workload's pods, as one sentence. Pure: the time is an argument.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use olm_api::condition::{Status, external::Pod as Type};
use olm_text::cut;

use super::container::{self, Role};
use super::problem::{Problem, Severity, foreign, reason};
use super::{TEMPLATE_LABEL, Workload};

/// Most problems that a sentence names.
const MAX_PROBLEMS: usize = 2;
/// Maximum length of a sentence in bytes, so that a condition has room for it.
const MAX_SENTENCE: usize = 800;
/// Time after which a pod without an error that has not started counts as a problem.
const SLOW: SignedDuration = SignedDuration::from_secs(30);

/// Problems of a workload, the worst first; empty if none is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    problems: Vec<Problem>,
}

impl Diagnosis {
    /// Reads the problems of a workload from its pods.
    #[must_use]
    pub fn of<'a>(workload: &Workload, pods: impl IntoIterator<Item = &'a Pod>, now: Timestamp) -> Self {
        let mut pods: Vec<&Pod> = pods
            .into_iter()
            .filter(|pod| !workload.outdated && pod.metadata.deletion_timestamp.is_none())
            .collect();
        // Oldest first, so that the sentence names the same pod every time.
        pods.sort_by_key(|pod| (created(pod), pod.name_any()));
        // The pods of a Deployment's other templates go; pods are only ever added to the present template.
        let present = pods
            .last()
            .and_then(|pod| pod.labels().get(TEMPLATE_LABEL))
            .cloned();
        if workload.kind == "Deployment" && present.is_some() {
            pods.retain(|pod| pod.labels().get(TEMPLATE_LABEL) == present.as_ref());
        }
        let role = if workload.kind == "Job" {
            Role::Task
        } else {
            Role::Service
        };
        let own = workload.failure.as_ref().map(|(why, message)| {
            let text = match workload.kind.as_str() {
                "Job" => format!("it has failed: {}", reason(why, message)),
                _ => format!("its pods cannot be created: {}", reason(why, message)),
            };
            Problem::new(Severity::Workload, "", text)
        });
        let of_pods = pods.into_iter().filter_map(|pod| pod_problem(pod, role, now));
        let mut problems: Vec<Problem> = own.into_iter().chain(of_pods).collect();
        problems.sort_by_key(|problem| problem.severity);
        let mut keys = BTreeSet::new();
        problems.retain(|problem| keys.insert(problem.key.clone()));
        problems.truncate(MAX_PROBLEMS);
        Self { problems }
    }

    /// Returns the diagnosis, in which a state that alternates with a more telling one keeps the text that it had
    /// `before`, so that the sentence changes only with the cause.
    #[must_use]
    pub fn steady(mut self, before: &Self) -> Self {
        for problem in self.problems.iter_mut().filter(|problem| problem.passing) {
            let same = |old: &&Problem| !old.passing && old.key == problem.key && old.pod == problem.pod;
            if let Some(old) = before.problems.iter().find(same) {
                *problem = old.clone();
            }
        }
        self
    }

    /// Returns the worst of several workloads with their diagnoses.
    pub fn worst<'a>(
        all: impl IntoIterator<Item = (&'a Workload, &'a Self)>,
    ) -> Option<(&'a Workload, &'a Self)> {
        let severity = |(_, diagnosis): &(&Workload, &Self)| diagnosis.problems.first().map(|p| p.severity);
        all.into_iter()
            .filter(|pair| severity(pair).is_some())
            .min_by_key(severity)
    }

    /// Returns the problems as a clause, for a line that names the workload; `None` without problems.
    #[must_use]
    pub fn clause(&self) -> Option<String> {
        let shown = self.problems.iter().map(|problem| match problem.pod.as_str() {
            "" => problem.text.clone(),
            pod => format!("pod {}: {}", foreign(pod), problem.text),
        });
        let shown: Vec<String> = shown.collect();
        (!shown.is_empty()).then(|| cut(&shown.join("; "), MAX_SENTENCE).into_owned())
    }

    /// Returns the problems as one sentence; `None` without problems.
    #[must_use]
    pub fn sentence(&self, workload: &Workload) -> Option<String> {
        let clause = self.clause()?;
        let place = format!("{}/{}", foreign(&workload.namespace), foreign(&workload.name));
        let text = format!("{} {place} is not available: {clause}", workload.kind);
        Some(format!("{}.", cut(&text, MAX_SENTENCE)))
    }
}

fn pod_problem(pod: &Pod, role: Role, now: Timestamp) -> Option<Problem> {
    let (none, no_spec) = (PodStatus::default(), PodSpec::default());
    let status = pod.status.as_ref().unwrap_or(&none);
    let spec = pod.spec.as_ref().unwrap_or(&no_spec);
    let found = match status.phase.as_deref() {
        Some("Succeeded") if role == Role::Task => None,
        Some("Failed") if role == Role::Service => Some(failed(status)),
        _ => containers(spec, status, role, now)
            .or_else(|| conditions(status, role))
            .or_else(|| slow(pod, status, now)),
    };
    found.map(|problem| Problem {
        pod: pod.name_any(),
        ..problem
    })
}

/// Returns the worst problem of the pod's containers.
fn containers(spec: &PodSpec, status: &PodStatus, role: Role, now: Timestamp) -> Option<Problem> {
    let init = status.init_container_statuses.iter().flatten();
    let init = init.filter_map(|status| container::problem(status, None, Role::Init, now));
    let others = status.container_statuses.iter().flatten().filter_map(|status| {
        let container = spec
            .containers
            .iter()
            .find(|container| container.name == status.name);
        container::problem(status, container, role, now)
    });
    init.chain(others).min_by_key(|problem| problem.severity)
}

/// Reads the pod's conditions: a pod that no node takes, and one that waits for a readiness gate.
fn conditions(status: &PodStatus, role: Role) -> Option<Problem> {
    let find = |type_: Type| {
        let mut conditions = status.conditions.iter().flatten();
        conditions.find(|condition| condition.type_ == type_)
    };
    let why = |condition: &k8s_openapi::api::core::v1::PodCondition| {
        let message = condition.message.as_deref().unwrap_or_default();
        reason(condition.reason.as_deref().unwrap_or_default(), message)
    };
    if let Some(scheduled) = find(Type::PodScheduled).filter(|condition| condition.status == Status::False) {
        let text = format!("no node takes it: {}", why(scheduled));
        return Some(Problem::new(Severity::Unschedulable, "unschedulable", text));
    }
    let contained = find(Type::ContainersReady).is_some_and(|condition| condition.status == Status::True);
    let ready = find(Type::Ready).filter(|condition| condition.status == Status::False)?;
    (contained && role == Role::Service).then(|| {
        Problem::new(
            Severity::NotReady,
            "gates",
            format!("it is not ready: {}", why(ready)),
        )
    })
}

fn failed(status: &PodStatus) -> Problem {
    let why = status.reason.as_deref().unwrap_or_default();
    let message = status.message.as_deref().unwrap_or_default();
    let text = match reason(why, message) {
        why if why.is_empty() => "it has failed".to_owned(),
        why => format!("it has failed: {why}"),
    };
    Problem::new(Severity::Failed, "failed", text)
}

/// Reports a pod that has not started for long. The cause, such as a volume that cannot be mounted, is in its events.
fn slow(pod: &Pod, status: &PodStatus, now: Timestamp) -> Option<Problem> {
    let waits = now.duration_since(created(pod)?) >= SLOW;
    if !waits || !matches!(status.phase.as_deref(), None | Some("Pending")) {
        return None;
    }
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
    let state = match node {
        Some(_) => "its containers are not created yet",
        None => "it has no node yet",
    };
    Some(Problem::new(
        Severity::Slow,
        "slow",
        format!("{state}; kubectl describe pod shows its events"),
    ))
}

fn created(pod: &Pod) -> Option<Timestamp> {
    pod.metadata.creation_timestamp.as_ref().map(|Time(time)| *time)
}

#[cfg(test)]
mod tests;
