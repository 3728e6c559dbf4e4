//! Leader election by a `coordination.k8s.io` Lease, with the names and times of upstream.
//!
//! The deciding is in [`decide`]; this is the thin task around it. Writes carry the resource
//! version that was read, so of two that try at once one loses. A leader that cannot renew in
//! [`RENEW_DEADLINE`] ends its work and reports [`LeaseError::Lost`]; the process should then
//! exit. `kube-lease-manager` was looked at and not taken: it has one grace time in place of
//! a renew deadline and a retry period, so upstream's timing cannot be kept with it.

pub mod decide;

use std::{future::Future, pin::pin, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::ObjectReference,
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use prometheus_client::metrics::{family::Family, gauge::Gauge};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{events::Events, metrics::Registry};
use decide::{Decision, Observed, evaluate};

/// How long others must wait after a holder's last sign of life.
pub const LEASE_DURATION: Duration = Duration::from_secs(137);
/// A leader that has not renewed for this long stops leading.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(107);
/// Time between two tries to take or renew.
pub const RETRY_PERIOD: Duration = Duration::from_secs(26);
/// Who reports elections. client-go puts the identity here, which is longer than `events.k8s.io/v1` takes.
const ELECTOR: &str = "leader-election";
/// Reason of the events that tell who leads.
const ELECTION: &str = "LeaderElection";
/// How long one call to the API server may take.
const CALL: Duration = Duration::from_secs(10);
/// How long the work may take to stop after the lease was lost, before we return anyway.
const STOP: Duration = Duration::from_secs(20);

/// Which lease, for whom, with which times.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who we are; see [`identity`].
    pub identity: String,
    /// See [`LEASE_DURATION`].
    pub lease_duration: Duration,
    /// See [`RENEW_DEADLINE`]; shorter than the lease's duration.
    pub renew_deadline: Duration,
    /// See [`RETRY_PERIOD`]; shorter than the renew deadline.
    pub retry_period: Duration,
    /// 1 while this process leads.
    pub leading: Gauge,
}

impl LeaseConfig {
    /// A lease with upstream's times and a fresh identity.
    #[must_use]
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity(),
            lease_duration: LEASE_DURATION,
            renew_deadline: RENEW_DEADLINE,
            retry_period: RETRY_PERIOD,
            leading: Gauge::default(),
        }
    }

    /// The same lease, with whether it is held among the metrics, under client-go's name.
    #[must_use]
    pub fn measured(self, registry: &Registry) -> Self {
        let masters = Family::<Vec<(&'static str, String)>, Gauge>::default();
        let leading = masters.get_or_create_owned(&vec![("name", self.name.clone())]);
        registry.register(|inner| {
            inner.register(
                "leader_election_master_status",
                "Whether this process leads: 0 or 1, by the name of the lease",
                masters,
            );
        });
        Self { leading, ..self }
    }
}

/// `<pod name>_<random uuid>`: unique even when a pod's container restarts.
#[must_use]
pub fn identity() -> String {
    let host = std::env::var("POD_NAME")
        .or_else(|_| std::env::var("HOSTNAME"))
        .ok()
        .or_else(|| std::fs::read_to_string("/etc/hostname").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned());
    // Version 4, variant 1, as uuids of this kind are marked.
    let bits = rand::random::<u128>() & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!(
        "{host}_{}-{}-{}-{}-{}",
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32)
    )
}

/// Why leading ended other than by shutdown.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The lease could not be renewed in time, or somebody else took it.
    #[error("lease {namespace}/{name} was lost: another replica may lead now, so this process must end")]
    Lost {
        /// The Lease's namespace.
        namespace: String,
        /// The Lease's name.
        name: String,
    },
}

/// Runs `work` while holding the lease; without a configuration, at once.
///
/// `work` gets a token that is cancelled on shutdown or when the lease is lost, and should then
/// return. When it has returned (or shutdown came before leading) the lease is released.
///
/// # Errors
/// [`LeaseError::Lost`].
pub async fn run_when_leader<Work, Fut, T>(
    client: Client,
    config: Option<LeaseConfig>,
    shutdown: CancellationToken,
    work: Work,
) -> Result<Option<T>, LeaseError>
where
    Work: FnOnce(CancellationToken) -> Fut,
    Fut: Future<Output = T>,
{
    let Some(config) = config else {
        return Ok(Some(work(shutdown).await));
    };
    let mut candidate = Candidate {
        events: Events::new(client.clone(), ELECTOR),
        api: Api::namespaced(client, &config.namespace),
        config,
        seen: None,
    };
    if !candidate.acquire(&shutdown).await {
        return Ok(None);
    }
    candidate.config.leading.set(1);
    candidate.tell_leading();
    let leading = shutdown.child_token();
    let mut working = pin!(work(leading.clone()));
    let lost = tokio::select! {
        done = &mut working => {
            candidate.config.leading.set(0);
            let stopped = candidate.election("stopped leading");
            candidate.release().await;
            candidate.tell_last(stopped).await;
            return Ok(Some(done));
        }
        () = candidate.renew_until_lost() => LeaseError::Lost {
            namespace: candidate.config.namespace.clone(),
            name: candidate.config.name.clone(),
        },
    };
    candidate.config.leading.set(0);
    tracing::error!(lease = candidate.config.name, "lease lost");
    leading.cancel();
    if timeout(STOP, working).await.is_err() {
        tracing::error!(lease = candidate.config.name, "work did not stop in time");
    }
    let stopped = candidate.election("stopped leading");
    candidate.tell_last(stopped).await;
    Err(lost)
}

struct Candidate {
    api: Api<Lease>,
    events: Events,
    config: LeaseConfig,
    seen: Option<Seen>,
}

/// The lease as last read, and when it was last seen to change.
struct Seen {
    lease: Lease,
    changed: Timestamp,
}

impl Candidate {
    /// What the event of an election is about, and what it says: the lease, and client-go's words.
    fn election(&self, what: &str) -> (ObjectReference, String) {
        let lease = self.seen.as_ref().map(|seen| &seen.lease.metadata);
        let object = ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            namespace: Some(self.config.namespace.clone()),
            name: Some(self.config.name.clone()),
            uid: lease.and_then(|metadata| metadata.uid.clone()),
            ..ObjectReference::default()
        };
        (object, format!("{} {what}", self.config.identity))
    }

    fn tell_leading(&self) {
        let (object, note) = self.election("became leader");
        self.events.normal(object, ELECTION, "Acquire", &note);
    }

    /// The process may end right behind it.
    async fn tell_last(&self, (object, note): (ObjectReference, String)) {
        // Another action than the first: else it would be counted as the same event again.
        self.events.normal_now(object, ELECTION, "Release", &note).await;
    }

    /// Waits until the lease is ours (`true`) or the token is cancelled.
    async fn acquire(&mut self, shutdown: &CancellationToken) -> bool {
        tracing::info!(
            lease = self.config.name,
            me = self.config.identity,
            "waiting to lead"
        );
        loop {
            let held = tokio::select! {
                () = shutdown.cancelled() => return false,
                held = self.step() => held,
            };
            match held {
                Ok(true) => {
                    tracing::info!(lease = self.config.name, "leading");
                    return true;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(lease = self.config.name, error, "lease cannot be taken"),
            }
            let jitter = self.config.retry_period.mul_f64(rand::random_range(0.0..0.2));
            tokio::select! {
                () = shutdown.cancelled() => return false,
                () = sleep(self.config.retry_period + jitter) => {}
            }
        }
    }

    /// Renews every retry period; returns when that failed for the whole renew deadline, or at
    /// once when somebody else holds the lease.
    async fn renew_until_lost(&mut self) {
        let mut renewed = Instant::now();
        loop {
            sleep(self.config.retry_period).await;
            let left = self.config.renew_deadline.saturating_sub(renewed.elapsed());
            match timeout(left, self.step()).await {
                Ok(Ok(true)) => renewed = Instant::now(),
                Ok(Ok(false)) if self.held_by_other() => return,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::warn!(lease = self.config.name, error, "lease not renewed"),
                Err(_) => return,
            }
            if renewed.elapsed() >= self.config.renew_deadline {
                return;
            }
        }
    }

    fn held_by_other(&self) -> bool {
        self.seen.as_ref().is_some_and(|seen| {
            let holder = holder(&seen.lease);
            !holder.is_empty() && holder != self.config.identity
        })
    }

    /// Reads the lease and takes or renews it when [`evaluate`] says so; whether it is ours.
    async fn step(&mut self) -> Result<bool, String> {
        let found = timeout(CALL, self.api.get_opt(&self.config.name))
            .await
            .map_err(|_| "the API server did not answer in time".to_owned())?
            .map_err(|error| crate::telemetry::chain(&error))?;
        let now = Timestamp::now();
        self.note(found, now);
        let observed = self
            .seen
            .as_ref()
            .map(|seen| observed(seen, self.config.lease_duration));
        if let Decision::Wait(left) = evaluate(observed.as_ref(), &self.config.identity, now) {
            tracing::debug!(lease = self.config.name, ?left, "held by another replica");
            return Ok(false);
        }
        let lease = self.claimed(now);
        let params = PostParams::default();
        let write = async {
            if lease.metadata.resource_version.is_some() {
                self.api.replace(&self.config.name, &params, &lease).await
            } else {
                self.api.create(&params, &lease).await
            }
        };
        let written = timeout(CALL, write)
            .await
            .map_err(|_| "the API server did not answer in time".to_owned())?;
        match written {
            Ok(lease) => {
                self.note(Some(lease), Timestamp::now());
                Ok(true)
            }
            // Another replica was faster.
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
            Err(error) => Err(crate::telemetry::chain(&error)),
        }
    }

    fn note(&mut self, found: Option<Lease>, now: Timestamp) {
        self.seen = found.map(|lease| {
            let unchanged = self.seen.as_ref().filter(|seen| {
                seen.lease.metadata.uid == lease.metadata.uid
                    && seen.lease.metadata.resource_version == lease.metadata.resource_version
            });
            let changed = unchanged.map_or(now, |seen| seen.changed);
            Seen { lease, changed }
        });
    }

    /// The lease with us as its holder as of `now`.
    fn claimed(&self, now: Timestamp) -> Lease {
        let mut lease = self.seen.as_ref().map_or_else(
            || Lease {
                metadata: ObjectMeta {
                    name: Some(self.config.name.clone()),
                    namespace: Some(self.config.namespace.clone()),
                    ..ObjectMeta::default()
                },
                spec: None,
            },
            |seen| seen.lease.clone(),
        );
        let ours = holder(&lease) == self.config.identity;
        let spec = lease.spec.get_or_insert_default();
        if !ours {
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |count| count.saturating_add(1)));
            spec.acquire_time = Some(MicroTime(now));
        }
        spec.holder_identity = Some(self.config.identity.clone());
        spec.lease_duration_seconds = Some(whole_seconds(self.config.lease_duration));
        spec.renew_time = Some(MicroTime(now));
        lease
    }

    /// Lets another replica take over at once. Failing to is no harm: the lease then expires.
    async fn release(&mut self) {
        let Some(Seen { mut lease, .. }) = self.seen.take() else {
            return;
        };
        if holder(&lease) != self.config.identity {
            return;
        }
        let now = MicroTime(Timestamp::now());
        let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            lease_transitions: transitions,
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            ..LeaseSpec::default()
        });
        let released = timeout(
            CALL,
            self.api
                .replace(&self.config.name, &PostParams::default(), &lease),
        )
        .await;
        match released {
            Ok(Ok(_)) => tracing::info!(lease = self.config.name, "lease released"),
            Ok(Err(error)) => tracing::warn!(lease = self.config.name, %error, "lease not released"),
            Err(_) => tracing::warn!(lease = self.config.name, "lease not released in time"),
        }
    }
}

fn holder(lease: &Lease) -> &str {
    lease
        .spec
        .as_ref()
        .and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

fn observed(seen: &Seen, default: Duration) -> Observed {
    let claimed = seen
        .lease
        .spec
        .as_ref()
        .and_then(|spec| spec.lease_duration_seconds);
    Observed {
        holder: holder(&seen.lease).to_owned(),
        duration: claimed
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(default, Duration::from_secs),
        changed: seen.changed,
    }
}

fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_differ_and_look_like_upstreams() {
        let (a, b) = (identity(), identity());
        assert_ne!(a, b);
        let uuid = a.rsplit_once('_').unwrap().1;
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'4');
        assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uuid}");
    }
}
