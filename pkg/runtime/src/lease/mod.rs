//! Leader election by a `coordination.k8s.io` Lease, with upstream's names and times.
//!
//! [`decide`] has the pure logic, this module the task around it. Writes carry the resource version that was read,
//! so that only one of two concurrent writers succeeds. A leader that cannot renew within [`RENEW_DEADLINE`] stops
//! its work and reports [`LeaseError::Lost`]; the process should then exit. `kube-lease-manager` has one grace
//! period in place of a renew deadline and a retry period, which rules out upstream's timing.

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
use decide::{Decision, ObservedLease, evaluate};

/// Time that other candidates must wait after the last observed renewal.
pub const LEASE_DURATION: Duration = Duration::from_secs(137);
/// Time without a renewal after which a leader stops leading.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(107);
/// Time between two attempts to acquire or renew.
pub const RETRY_PERIOD: Duration = Duration::from_secs(26);
/// Reporter of election events. client-go uses the identity, which is too long for `events.k8s.io/v1`.
const REPORTER: &str = "leader-election";
/// Reason of election events.
const EVENT_REASON: &str = "LeaderElection";
/// Timeout for a call to the API server.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for the work to stop after the lease was lost.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// Settings of a leader election.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Identity of this process; see [`identity`].
    pub identity: String,
    /// See [`LEASE_DURATION`].
    pub lease_duration: Duration,
    /// See [`RENEW_DEADLINE`]; shorter than the lease duration.
    pub renew_deadline: Duration,
    /// See [`RETRY_PERIOD`]; shorter than the renew deadline.
    pub retry_period: Duration,
    /// Gauge that is 1 while this process leads.
    pub leading: Gauge,
}

impl LeaseConfig {
    /// Returns settings with upstream's times and a new identity.
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

    /// Registers the gauge of leadership under client-go's name.
    #[must_use]
    pub fn measured(self, registry: &Registry) -> Self {
        let status = Family::<Vec<(&'static str, String)>, Gauge>::default();
        let leading = status.get_or_create_owned(&vec![("name", self.name.clone())]);
        registry.register(|inner| {
            inner.register(
                "leader_election_master_status",
                "Whether this process leads: 0 or 1, by the name of the lease",
                status,
            );
        });
        Self { leading, ..self }
    }
}

/// Returns `<pod name>_<random uuid>`, which differs between restarts of a pod's container.
#[must_use]
pub fn identity() -> String {
    let host = std::env::var("POD_NAME")
        .or_else(|_| std::env::var("HOSTNAME"))
        .ok()
        .or_else(|| std::fs::read_to_string("/etc/hostname").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned());
    // Version 4, variant 1 (RFC 9562).
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

/// Error that ends leadership before shutdown.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The renewal failed for too long, or another process took the lease.
    #[error("lease {namespace}/{name} was lost: another replica may lead now, so this process must end")]
    Lost {
        /// The Lease's namespace.
        namespace: String,
        /// The Lease's name.
        name: String,
    },
}

/// Runs `work` while holding the lease; without a configuration, immediately.
///
/// `work` gets a token that is cancelled on shutdown or when the lease is lost, and should then return. After that,
/// or on shutdown before leading, the lease is released.
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
        events: Events::new(client.clone(), REPORTER),
        api: Api::namespaced(client, &config.namespace),
        config,
        cached: None,
    };
    if !candidate.acquire(&shutdown).await {
        return Ok(None);
    }
    candidate.config.leading.set(1);
    candidate.publish_started();
    let leading = shutdown.child_token();
    let mut working = pin!(work(leading.clone()));
    let lost = tokio::select! {
        done = &mut working => {
            candidate.config.leading.set(0);
            let stopped = candidate.election_event("stopped leading");
            candidate.release().await;
            candidate.publish_stopped(stopped).await;
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
    if timeout(STOP_TIMEOUT, working).await.is_err() {
        tracing::error!(lease = candidate.config.name, "work did not stop in time");
    }
    let stopped = candidate.election_event("stopped leading");
    candidate.publish_stopped(stopped).await;
    Err(lost)
}

struct Candidate {
    api: Api<Lease>,
    events: Events,
    config: LeaseConfig,
    cached: Option<CachedLease>,
}

/// The lease as last read, and the time of its last observed change.
struct CachedLease {
    lease: Lease,
    changed: Timestamp,
}

impl Candidate {
    /// Returns object and note of an election event: the lease, and client-go's words.
    fn election_event(&self, action: &str) -> (ObjectReference, String) {
        let lease = self.cached.as_ref().map(|cached| &cached.lease.metadata);
        let object = ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            namespace: Some(self.config.namespace.clone()),
            name: Some(self.config.name.clone()),
            uid: lease.and_then(|metadata| metadata.uid.clone()),
            ..ObjectReference::default()
        };
        (object, format!("{} {action}", self.config.identity))
    }

    fn publish_started(&self) {
        let (object, note) = self.election_event("became leader");
        self.events.normal(object, EVENT_REASON, "Acquire", &note);
    }

    /// Writes the last event; the process may exit right after it.
    async fn publish_stopped(&self, (object, note): (ObjectReference, String)) {
        // The action differs from the first event's: otherwise the events would be aggregated.
        self.events
            .normal_now(object, EVENT_REASON, "Release", &note)
            .await;
    }

    /// Waits until this process holds the lease (`true`) or the token is cancelled.
    async fn acquire(&mut self, shutdown: &CancellationToken) -> bool {
        tracing::info!(
            lease = self.config.name,
            me = self.config.identity,
            "waiting for the lease"
        );
        loop {
            let acquired = tokio::select! {
                () = shutdown.cancelled() => return false,
                acquired = self.try_acquire_or_renew() => acquired,
            };
            match acquired {
                Ok(true) => {
                    tracing::info!(lease = self.config.name, "leading");
                    return true;
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(lease = self.config.name, error, "lease not acquired"),
            }
            let jitter = self.config.retry_period.mul_f64(rand::random_range(0.0..0.2));
            tokio::select! {
                () = shutdown.cancelled() => return false,
                () = sleep(self.config.retry_period + jitter) => {}
            }
        }
    }

    /// Renews every retry period. Returns when renewals failed for the whole renew deadline, or at once when another
    /// process holds the lease.
    async fn renew_until_lost(&mut self) {
        let mut renewed = Instant::now();
        loop {
            sleep(self.config.retry_period).await;
            let left = self.config.renew_deadline.saturating_sub(renewed.elapsed());
            match timeout(left, self.try_acquire_or_renew()).await {
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
        self.cached.as_ref().is_some_and(|cached| {
            let holder = holder(&cached.lease);
            !holder.is_empty() && holder != self.config.identity
        })
    }

    /// Reads the lease, and acquires or renews it if [`evaluate`] says so. Returns true if this process holds it.
    async fn try_acquire_or_renew(&mut self) -> Result<bool, String> {
        let found = timeout(CALL_TIMEOUT, self.api.get_opt(&self.config.name))
            .await
            .map_err(|_| "the API server did not answer in time".to_owned())?
            .map_err(|error| olm_text::chain(&error))?;
        let now = Timestamp::now();
        self.observe(found, now);
        let observed = self
            .cached
            .as_ref()
            .map(|cached| observed(cached, self.config.lease_duration));
        if let Decision::Wait(left) = evaluate(observed.as_ref(), &self.config.identity, now) {
            tracing::debug!(lease = self.config.name, ?left, "held by another replica");
            return Ok(false);
        }
        let lease = self.with_own_holder(now);
        let params = PostParams::default();
        let write = async {
            if lease.metadata.resource_version.is_some() {
                self.api.replace(&self.config.name, &params, &lease).await
            } else {
                self.api.create(&params, &lease).await
            }
        };
        let written = timeout(CALL_TIMEOUT, write)
            .await
            .map_err(|_| "the API server did not answer in time".to_owned())?;
        match written {
            Ok(lease) => {
                self.observe(Some(lease), Timestamp::now());
                Ok(true)
            }
            // Another replica was faster.
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
            Err(error) => Err(olm_text::chain(&error)),
        }
    }

    fn observe(&mut self, found: Option<Lease>, now: Timestamp) {
        self.cached = found.map(|lease| {
            let unchanged = self.cached.as_ref().filter(|cached| {
                cached.lease.metadata.uid == lease.metadata.uid
                    && cached.lease.metadata.resource_version == lease.metadata.resource_version
            });
            let changed = unchanged.map_or(now, |cached| cached.changed);
            CachedLease { lease, changed }
        });
    }

    /// Returns the lease with this process as its holder as of `now`.
    fn with_own_holder(&self, now: Timestamp) -> Lease {
        let mut lease = self.cached.as_ref().map_or_else(
            || Lease {
                metadata: ObjectMeta {
                    name: Some(self.config.name.clone()),
                    namespace: Some(self.config.namespace.clone()),
                    ..ObjectMeta::default()
                },
                spec: None,
            },
            |cached| cached.lease.clone(),
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

    /// Releases the lease, so that another replica can take over at once. If the release fails, the lease expires.
    async fn release(&mut self) {
        let Some(CachedLease { mut lease, .. }) = self.cached.take() else {
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
            CALL_TIMEOUT,
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

fn observed(cached: &CachedLease, default: Duration) -> ObservedLease {
    let duration = cached
        .lease
        .spec
        .as_ref()
        .and_then(|spec| spec.lease_duration_seconds);
    ObservedLease {
        holder: holder(&cached.lease).to_owned(),
        duration: duration
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map_or(default, Duration::from_secs),
        changed: cached.changed,
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
