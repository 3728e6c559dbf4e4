//! Candidate of a leader election: acquires, renews and releases the Lease.

use std::{pin::pin, time::Duration};

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
    Api,
    api::PostParams,
    runtime::{WatchStreamExt as _, watcher::watch_object},
};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::decide::{Decision, ObservedLease, evaluate, next_attempt};
use super::{EVENT_REASON, LeaseConfig};
use crate::clock;
use crate::events::Events;

/// Candidate for the leadership, or the leader.
pub(super) struct Candidate {
    pub(super) api: Api<Lease>,
    pub(super) events: Events,
    pub(super) config: LeaseConfig,
    pub(super) cached: Option<CachedLease>,
    /// Start of the last successful write. Others count the lease duration from a later time: from when they see the write.
    pub(super) written: Instant,
}

/// The lease as last read, and the time of its last observed change.
pub(super) struct CachedLease {
    lease: Lease,
    changed: Instant,
}

impl Candidate {
    /// Returns object and note of an election event: the lease, and client-go's words.
    pub(super) fn election_event(&self, action: &str) -> (ObjectReference, String) {
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

    pub(super) fn publish_started(&self) {
        let (object, note) = self.election_event("became leader");
        self.events.normal(object, EVENT_REASON, "Acquire", &note);
    }

    /// Writes the last event; the process may exit right after it.
    pub(super) async fn publish_stopped(&self, (object, note): (ObjectReference, String)) {
        // The action differs from the first event's: otherwise the events would be aggregated.
        self.events
            .normal_now(object, EVENT_REASON, "Release", &note)
            .await;
    }

    /// Waits until this process holds the lease (`true`) or the token is cancelled (`false`). In the latter case, the last
    /// write may have acquired the lease.
    pub(super) async fn acquire(&mut self, shutdown: &CancellationToken) -> bool {
        tracing::info!(
            lease = self.config.name,
            me = self.config.identity,
            "waiting for the lease"
        );
        let mut changes = pin!(watch_object(self.api.clone(), &self.config.name).default_backoff());
        let mut watched = false;
        loop {
            let may_write = tokio::select! {
                () = shutdown.cancelled() => return false,
                may_write = self.read() => may_write,
            };
            // Shutdown does not cut off a write: the API server may commit it, and then the lease has to be released.
            let acquired = match may_write {
                Ok(true) => self.write().await,
                not_free => not_free,
            };
            if shutdown.is_cancelled() {
                return false;
            }
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

    pub(super) fn decision(&self) -> Decision {
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
    /// process holds the lease. The result is the time from which another process may lead.
    pub(super) async fn renew_until_lost(&mut self) -> Instant {
        let period = self.config.retry_period;
        loop {
            let deadline = self.written + self.config.renew_deadline;
            let attempt = async {
                sleep(period).await;
                self.renew().await
            };
            match timeout_at(deadline, attempt).await {
                Ok(Ok(false)) if self.held_by_other() => return Instant::now(),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::warn!(lease = self.config.name, error, "lease not renewed"),
                Err(_) => return self.written + self.config.lease_duration,
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
    pub(super) async fn renew(&mut self) -> Result<bool, String> {
        if self.decision() == Decision::Renew && self.write().await? {
            return Ok(true);
        }
        self.try_acquire_or_renew().await
    }

    /// Reads the lease, and acquires or renews it if [`evaluate`] says so. Returns true if this process holds it.
    async fn try_acquire_or_renew(&mut self) -> Result<bool, String> {
        Ok(self.read().await? && self.write().await?)
    }

    /// Reads the lease. Returns true if [`evaluate`] says that this process may acquire or renew it.
    async fn read(&mut self) -> Result<bool, String> {
        let found = timeout(self.config.call_timeout(), self.api.get_opt(&self.config.name))
            .await
            .map_err(|_| "the API server did not answer in time".to_owned())?
            .map_err(|error| olm_text::chain(&error))?;
        self.observe(found);
        if let Decision::Wait(left) = self.decision() {
            tracing::debug!(lease = self.config.name, ?left, "held by another replica");
            return Ok(false);
        }
        Ok(true)
    }

    /// Writes the lease with this process as its holder. Returns false if the lease is not as it was read.
    pub(super) async fn write(&mut self) -> Result<bool, String> {
        let lease = self.with_own_holder(clock::now());
        let start = Instant::now();
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
                self.written = start;
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

    pub(super) fn observe(&mut self, found: Option<Lease>) {
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
    pub(super) async fn release(&mut self) {
        let Some(CachedLease { mut lease, .. }) = self.cached.take() else {
            return;
        };
        if holder(&lease) != self.config.identity {
            return;
        }
        let now = MicroTime(clock::now());
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
