//! Task of one watch: lists, watches, and restarts after every error.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::Resource as _;
use kube::api::{Api, DynamicObject};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher::{self, DefaultBackoff, Event};
use olm_api::{ClusterObjectSet, keys};
use tokio::sync::mpsc;

use super::health::{Fault, WatchTiming};
use super::slim::{PAGE_SIZE, SlimMeta};
use super::{Key, Kind, Owners, Shared, display_kind, key_of, now, record};

type Objects = SlimMeta<DynamicObject>;

/// Watcher of the objects of one kind.
pub(super) struct KindWatcher {
    pub(super) shared: Arc<Shared>,
    pub(super) triggers: mpsc::Sender<ObjectRef<ClusterObjectSet>>,
    pub(super) timing: WatchTiming,
    pub(super) kind: Kind,
}

/// The receiver of triggers was dropped.
struct ReceiverDropped;

impl KindWatcher {
    /// Runs until the receiver of triggers is dropped.
    pub(super) async fn run(self, api: Api<Objects>) {
        let mut reported = None;
        let mut backoff = DefaultBackoff::default();
        while let Ok(()) = self.list_and_watch(&api, &mut reported, &mut backoff).await {
            let longest = self.timing.interval;
            let pause = backoff.next().map_or(longest, |pause| pause.min(longest));
            if self
                .run_and_report(tokio::time::sleep(pause), &mut reported)
                .await
                .is_err()
            {
                return;
            }
        }
    }

    /// Lists and watches until an error. After an error the watch is not resumed: only a new list shows all changes.
    async fn list_and_watch(
        &self,
        api: &Api<Objects>,
        reported: &mut Option<Fault>,
        backoff: &mut DefaultBackoff,
    ) -> Result<(), ReceiverDropped> {
        let config = watcher::Config::default()
            .labels(keys::OWNER_NAME_LABEL)
            .page_size(PAGE_SIZE);
        let mut events = pin!(watcher::watcher(api.clone(), config));
        let mut listed = HashSet::new();
        while let Some(event) = self.run_and_report(events.next(), reported).await? {
            match event {
                Ok(event) => {
                    let owners: HashSet<String> = self.record_event(event, &mut listed).into_iter().collect();
                    self.trigger(owners).await?;
                    if self.shared.health.lock().is_working() {
                        backoff.reset();
                    }
                }
                Err(error) => {
                    tracing::debug!(kind = display_kind(&self.kind), %error, "watch of managed objects failed; retrying");
                    self.shared.health.lock().failed(Fault::of(&error), now());
                    break;
                }
            }
        }
        Ok(())
    }

    /// Waits for `work` and reports changes of the health, and missing objects, in the meantime.
    async fn run_and_report<T>(
        &self,
        work: impl Future<Output = T>,
        reported: &mut Option<Fault>,
    ) -> Result<T, ReceiverDropped> {
        let mut work = pin!(work);
        loop {
            self.report_health(reported).await?;
            self.report_missing().await?;
            let at = now();
            let health = self.shared.health.lock().deadline(at);
            let Some(deadline) = health.into_iter().chain(self.missing_from()).min() else {
                return Ok(work.await);
            };
            tokio::select! {
                done = &mut work => return Ok(done),
                () = tokio::time::sleep(deadline.saturating_duration_since(at) + Duration::from_millis(1)) => {}
            }
        }
    }

    /// Triggers every revision that needs the kind if the watch starts to fail, fails for another cause, or
    /// recovers.
    async fn report_health(&self, reported: &mut Option<Fault>) -> Result<(), ReceiverDropped> {
        let failing = {
            let mut health = self.shared.health.lock();
            let at = now();
            health.tick(at);
            health.failing(at)
        };
        if failing == *reported {
            return Ok(());
        }
        if let Some(fault) = &failing {
            tracing::warn!(
                kind = display_kind(&self.kind),
                reason = fault.cause.as_str(),
                error = fault.text,
                "objects of this kind are not watched; they are read on an interval until the watch is back"
            );
        } else {
            tracing::info!(
                kind = display_kind(&self.kind),
                "objects of this kind are watched again"
            );
        }
        *reported = failing;
        let revisions: Vec<String> = self.shared.revisions.lock().values().cloned().collect();
        self.trigger(revisions).await
    }

    /// Returns the time from which the expected objects count as missing; `None` if there are none, and while the watch fails. Until
    /// then, the events of objects that were written after the list can still come.
    fn missing_from(&self) -> Option<Instant> {
        if !self.shared.health.lock().is_working() {
            return None;
        }
        let cache = self.shared.cache.lock();
        let listed = cache.synced.filter(|_| !cache.expected.is_empty());
        listed.map(|at| at + self.timing.settle)
    }

    /// Triggers the revisions whose expected objects are missing.
    async fn report_missing(&self) -> Result<(), ReceiverDropped> {
        if self.missing_from().is_none_or(|from| now() < from) {
            return Ok(());
        }
        let revisions: HashSet<String> = self.shared.cache.lock().miss_expected().into_iter().collect();
        self.trigger(revisions).await
    }

    async fn trigger(&self, owners: impl IntoIterator<Item = String>) -> Result<(), ReceiverDropped> {
        for owner in owners {
            let sent = self.triggers.send(ObjectRef::new(&owner)).await;
            sent.map_err(|_| ReceiverDropped)?;
        }
        Ok(())
    }

    /// Records an event; returns the revisions to trigger.
    fn record_event(&self, event: Event<Objects>, listed: &mut HashSet<Key>) -> Vec<String> {
        let cache = &self.shared.cache;
        match event {
            Event::Apply(object) => record(cache, &self.kind, object.meta()).1,
            Event::InitApply(object) => {
                let (key, owners) = record(cache, &self.kind, object.meta());
                listed.insert(key);
                owners
            }
            Event::Delete(object) => {
                let mut owners = Owners::of(object.meta()).names;
                let key = key_of(object.meta());
                let mut cache = cache.lock();
                owners.extend(cache.remove(&key));
                cache.record_deleted(key);
                owners
            }
            Event::Init => {
                listed.clear();
                self.shared.health.lock().listing(now());
                Vec::new()
            }
            Event::InitDone => {
                let mut owners = cache.lock().finish_list(&std::mem::take(listed));
                let relisted = self.shared.health.lock().listed(now());
                if relisted {
                    // The list does not show objects that were created and deleted in between.
                    owners.extend(self.shared.revisions.lock().values().cloned());
                }
                owners
            }
        }
    }
}
