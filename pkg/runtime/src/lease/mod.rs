//! Leader election by a `coordination.k8s.io` Lease, with upstream's names and client-go's default times.
//!
//! [`decide`] has the pure logic, this module the task around it. Writes carry the resource version that was read,
//! so that only one of two concurrent writers succeeds. A leader that cannot renew within [`RENEW_DEADLINE`] stops
//! its work and reports [`LeaseError::Lost`]; the process should then exit. A candidate watches the lease: it tries
//! to acquire a released lease at once, and an expired one when the time is up, and sends no requests in between.
//! `kube-lease-manager` has one grace period in place of a renew deadline and a retry period.
//!
//! Upstream's times (137 s, 107 s, 26 s) let a leader survive a minute without an API server, and leave the cluster
//! without a leader for more than two minutes after a crash. A restart costs these controllers only seconds, since
//! content is kept on disk and objects in etcd, so the times favour the crash.

pub mod decide;

use std::{future::Future, pin::pin, time::Duration};

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::ObjectReference,
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client,
    api::PostParams,
    runtime::{WatchStreamExt as _, watcher::watch_object},
};
use prometheus_client::metrics::{family::Family, gauge::Gauge};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::{events::Events, metrics::Registry};
use decide::{Decision, ObservedLease, evaluate, next_attempt};

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

    /// Returns the time for the work to stop after the lease was lost. Afterwards another replica may lead.
    fn stop_timeout(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline)
    }

    fn jitter(&self) -> Duration {
        self.retry_period.mul_f64(rand::random_range(0.0..JITTER))
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
    if timeout(candidate.config.stop_timeout(), working).await.is_err() {
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
    changed: Instant,
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
        let mut changes = pin!(watch_object(self.api.clone(), &self.config.name).default_backoff());
        let mut watched = false;
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
            // Until the lease is free, expires, or cannot be watched any longer.
            let mut next = Instant::now() + self.delay(watched);
            loop {
                tokio::select! {
                    () = shutdown.cancelled() => return false,
                    () = sleep_until(next) => break,
                    Some(change) = changes.next() => match change {
                        Ok(lease) => {
                            watched = true;
                            let before = self.resource_version();
                            self.observe(lease);
                            if self.decision() == Decision::Acquire && before != self.resource_version() {
                                break;
                            }
                            next = Instant::now() + self.delay(watched);
                        }
                        Err(error) => {
                            tracing::debug!(lease = self.config.name, %error, "the lease is not watched; polling");
                            watched = false;
                            next = next.min(Instant::now() + self.delay(watched));
                        }
                    },
                }
            }
        }
    }

    /// Returns the delay before the next attempt to acquire the lease without an event.
    fn delay(&self, watched: bool) -> Duration {
        next_attempt(self.decision(), watched, self.config.retry_period) + self.config.jitter()
    }

    fn decision(&self) -> Decision {
        let observed = self.observed();
        evaluate(observed.as_ref(), &self.config.identity)
    }

    fn observed(&self) -> Option<ObservedLease> {
        let cached = self.cached.as_ref()?;
        Some(observed(cached, self.config.lease_duration))
    }

    fn resource_version(&self) -> Option<String> {
        self.cached.as_ref()?.lease.metadata.resource_version.clone()
    }

    /// Renews every retry period. Returns when renewals failed for the whole renew deadline, or at once when another
    /// process holds the lease.
    async fn renew_until_lost(&mut self) {
        let mut renewed = Instant::now();
        loop {
            sleep(self.config.retry_period).await;
            let left = self.config.renew_deadline.saturating_sub(renewed.elapsed());
            // Others count from the time at which they see the renewal, which is later.
            let attempt = Instant::now();
            match timeout(left, self.renew()).await {
                Ok(Ok(true)) => renewed = attempt,
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

    /// Renews the lease with one write, since the cached lease is this process's own last write. If another process
    /// changed it, reads it again.
    async fn renew(&mut self) -> Result<bool, String> {
        if self.decision() == Decision::Renew && self.write().await? {
            return Ok(true);
        }
        self.try_acquire_or_renew().await
    }

    /// Reads the lease, and acquires or renews it if [`evaluate`] says so. Returns true if this process holds it.
    async fn try_acquire_or_renew(&mut self) -> Result<bool, String> {
        let found = timeout(self.config.call_timeout(), self.api.get_opt(&self.config.name))
            .await
            .map_err(|_| "the API server did not answer in time".to_owned())?
            .map_err(|error| olm_text::chain(&error))?;
        self.observe(found);
        if let Decision::Wait(left) = self.decision() {
            tracing::debug!(lease = self.config.name, ?left, "held by another replica");
            return Ok(false);
        }
        self.write().await
    }

    /// Writes the lease with this process as its holder. Returns false if the lease is not as it was read.
    async fn write(&mut self) -> Result<bool, String> {
        let lease = self.with_own_holder(Timestamp::now());
        let params = PostParams::default();
        let write = async {
            if lease.metadata.resource_version.is_some() {
                self.api.replace(&self.config.name, &params, &lease).await
            } else {
                self.api.create(&params, &lease).await
            }
        };
        let written = timeout(self.config.call_timeout(), write)
            .await
            .map_err(|_| "the API server did not answer in time".to_owned())?;
        match written {
            Ok(lease) => {
                self.observe(Some(lease));
                Ok(true)
            }
            // Another replica was faster, or the lease was deleted.
            Err(kube::Error::Api(status))
                if status.is_conflict() || status.is_already_exists() || status.is_not_found() =>
            {
                Ok(false)
            }
            Err(error) => Err(olm_text::chain(&error)),
        }
    }

    fn observe(&mut self, found: Option<Lease>) {
        self.cached = found.map(|lease| {
            let unchanged = self.cached.as_ref().filter(|cached| {
                cached.lease.metadata.uid == lease.metadata.uid
                    && cached.lease.metadata.resource_version == lease.metadata.resource_version
            });
            let changed = unchanged.map_or_else(Instant::now, |cached| cached.changed);
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
            self.config.call_timeout(),
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
        silence: cached.changed.elapsed(),
    }
}

fn whole_seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use kube::client::Body;
    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;

    /// API server with one lease. Lists answer `403` unless `watchable`; a watch never reports a change.
    #[derive(Clone)]
    struct FakeApi {
        lease: Arc<Mutex<Value>>,
        reads: Arc<AtomicUsize>,
        watchable: bool,
    }

    impl FakeApi {
        fn held_by(holder: &str, watchable: bool) -> Self {
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "lock", "namespace": "n", "uid": "u", "resourceVersion": "1"},
                "spec": {"holderIdentity": holder, "leaseDurationSeconds": 1}});
            Self {
                lease: Arc::new(Mutex::new(lease)),
                reads: Arc::default(),
                watchable,
            }
        }

        fn set_holder(&self, holder: &str, version: &str) {
            let mut lease = self.lease.lock();
            lease["spec"]["holderIdentity"] = json!(holder);
            lease["metadata"]["resourceVersion"] = json!(version);
        }

        async fn answer(self, request: http::Request<Body>) -> http::Response<Body> {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let single = request.uri().path().ends_with("/lock");
            let forbidden = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": "no"});
            let (code, body) = match (request.method().as_str(), single) {
                ("GET", true) => {
                    self.reads.fetch_add(1, Ordering::SeqCst);
                    (200, self.lease.lock().clone())
                }
                ("GET", false) if self.watchable && query.contains("watch=true") => {
                    std::future::pending().await
                }
                ("GET", false) if self.watchable => {
                    let list = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "LeaseList",
                        "metadata": {"resourceVersion": "1"}, "items": [self.lease.lock().clone()]});
                    (200, list)
                }
                ("PUT", true) => {
                    let sent = request.into_body().collect_bytes().await.unwrap();
                    let sent: Value = serde_json::from_slice(&sent).unwrap();
                    let mut lease = self.lease.lock();
                    assert_eq!(
                        sent["metadata"]["resourceVersion"],
                        lease["metadata"]["resourceVersion"]
                    );
                    *lease = sent;
                    lease["metadata"]["resourceVersion"] = json!("9");
                    (200, lease.clone())
                }
                // Lists, unless watchable, and events.
                _ => (403, forbidden),
            };
            let response = http::Response::builder().status(code);
            response.body(Body::from(body.to_string().into_bytes())).unwrap()
        }

        /// Waits for the lease; returns the time that it took.
        async fn acquire(&self) -> Duration {
            let api = self.clone();
            let service = tower::service_fn(move |request| {
                let api = api.clone();
                async move { Ok::<_, std::io::Error>(api.answer(request).await) }
            });
            let (client, start) = (Client::new(service, "n"), Instant::now());
            let led = run_when_leader(
                client,
                Some(LeaseConfig {
                    lease_duration: Duration::from_secs(1),
                    retry_period: Duration::from_millis(50),
                    ..LeaseConfig::new("n", "lock")
                }),
                CancellationToken::new(),
                async |_| start.elapsed(),
            );
            led.await.unwrap().unwrap()
        }
    }

    #[tokio::test]
    async fn a_dead_leader_is_succeeded_when_the_lease_expires_and_not_before() {
        let api = FakeApi::held_by("dead", true);
        let took = api.acquire().await;
        assert!(took >= Duration::from_secs(1), "{took:?}");
        assert_eq!(
            api.reads.load(Ordering::SeqCst),
            2,
            "a watched lease is not polled"
        );
    }

    #[tokio::test]
    async fn a_lease_that_cannot_be_watched_is_polled() {
        let api = FakeApi::held_by("leader", false);
        let release = async {
            for version in 2..10 {
                sleep(Duration::from_millis(200)).await;
                api.set_holder("leader", &version.to_string());
            }
            let held = api.reads.load(Ordering::SeqCst);
            api.set_holder("", "10");
            held
        };
        let (took, held) = tokio::join!(api.acquire(), release);
        assert!(
            took >= Duration::from_millis(1600),
            "a renewed lease was taken after {took:?}"
        );
        assert!(held > 3, "{held} reads");
    }

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
