//! Leader election by a `coordination.k8s.io` Lease, with upstream's names and client-go's default times.
//!
//! [`decide`] has the pure logic, this module the task around it. Writes carry the resource version that was read,
//! so that only one of two concurrent writers succeeds. A leader that cannot renew within [`RENEW_DEADLINE`] stops
//! its work, which is dropped before another replica may lead, and reports [`LeaseError::Lost`]; the process should
//! then exit. A candidate watches the lease: it tries
//! to acquire a released lease at once, and an expired one when the time is up, and sends no requests in between.
//! `kube-lease-manager` has one grace period in place of a renew deadline and a retry period.
//!
//! Upstream's times (137 s, 107 s, 26 s) let a leader survive a minute without an API server, and leave the cluster
//! without a leader for more than two minutes after a crash. A restart costs these controllers only seconds, since
//! content is kept on disk and objects in etcd, so the times favour the crash.

mod candidate;
pub mod decide;

use std::{future::Future, time::Duration};

use kube::{Api, Client};
use prometheus_client::metrics::{family::Family, gauge::Gauge};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{
    clock,
    events::Events,
    metrics::{Description, Registry},
};
use candidate::Candidate;

/// Time that other candidates must wait after the last observed renewal.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);
/// Time without a renewal after which a leader stops leading.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// Time between two renewals, and between two attempts to acquire a lease that cannot be watched.
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);
/// Reporter of election events. client-go uses the identity, which is too long for `events.k8s.io/v1`.
const REPORTER: &str = "leader-election";
/// Reason of election events.
const EVENT_REASON: &str = "LeaderElection";
/// Maximum share of the retry period that is added to a delay, so that candidates do not try in step.
const JITTER: f64 = 0.2;

pub(crate) const MASTER_STATUS: Description = Description::gauge(
    "leader_election_master_status",
    &["name"],
    "Whether this process leads: 0 or 1, by the name of the lease",
);

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
    /// Returns settings with the default times and a new identity.
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

    /// Returns the timeout for a call to the API server: a leader can try twice within the renew deadline.
    fn call_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    fn jitter(&self) -> Duration {
        self.retry_period.mul_f64(clock::random() * JITTER)
    }

    /// Registers the gauge of leadership under client-go's name.
    #[must_use]
    pub fn measured(self, registry: &Registry) -> Self {
        let status = Family::<Vec<(&'static str, String)>, Gauge>::default();
        let leading = status.get_or_create_owned(&vec![("name", self.name.clone())]);
        registry.register(|inner| MASTER_STATUS.register(inner, status));
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
/// or on shutdown before leading, the lease is released. Work that has not returned when another replica may lead is
/// dropped; tasks that it spawned must end with it.
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
        written: Instant::now(),
    };
    if !candidate.acquire(&shutdown).await {
        candidate.release().await;
        return Ok(None);
    }
    candidate.config.leading.set(1);
    candidate.publish_started();
    let leading = shutdown.child_token();
    let mut working = Box::pin(work(leading.clone()));
    let others_may_lead = tokio::select! {
        done = &mut working => {
            candidate.config.leading.set(0);
            let stopped = candidate.election_event("stopped leading");
            candidate.release().await;
            candidate.publish_stopped(stopped).await;
            return Ok(Some(done));
        }
        others_may_lead = candidate.renew_until_lost() => others_may_lead,
    };
    candidate.config.leading.set(0);
    tracing::error!(lease = candidate.config.name, "lease lost");
    leading.cancel();
    if timeout_at(others_may_lead, &mut working).await.is_err() {
        tracing::error!(lease = candidate.config.name, "work did not stop in time");
    }
    // kube spawns reconciles as tasks, and aborts them only when their controller is dropped.
    drop(working);
    let stopped = candidate.election_event("stopped leading");
    candidate.publish_stopped(stopped).await;
    Err(LeaseError::Lost {
        namespace: candidate.config.namespace,
        name: candidate.config.name,
    })
}

#[cfg(test)]
mod tests;
