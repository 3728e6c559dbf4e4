//! The task behind one watch: lists, watches, and begins anew after every error.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::Resource as _;
use kube::api::{Api, DynamicObject, PartialObjectMeta};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher::{self, DefaultBackoff, Event};
use olm_api::{ClusterObjectSet, keys};
use tokio::sync::mpsc;

use super::health::{Fault, Pace};
use super::{Key, Shared, key_of, note, owners_of};

type Objects = PartialObjectMeta<DynamicObject>;

/// Follows the objects of one kind.
pub(super) struct Follower {
    pub(super) shared: Arc<Shared>,
    pub(super) triggers: mpsc::Sender<ObjectRef<ClusterObjectSet>>,
    pub(super) pace: Pace,
    /// Kind, for the log.
    pub(super) kind: String,
}

/// The receiver of triggers is gone.
struct Stopped;

impl Follower {
    /// Runs until the receiver of triggers is gone.
    pub(super) async fn run(self, api: Api<Objects>) {
        let mut told = None;
        let mut backoff = DefaultBackoff::default();
        while let Ok(()) = self.round(&api, &mut told, &mut backoff).await {
            let longest = self.pace.interval;
            let pause = backoff.next().map_or(longest, |pause| pause.min(longest));
            if self
                .meanwhile(tokio::time::sleep(pause), &mut told)
                .await
                .is_err()
            {
                return;
            }
        }
    }

    /// Lists and watches until something fails. A watch is not resumed after an error: only a new list proves that nothing was missed.
    async fn round(
        &self,
        api: &Api<Objects>,
        told: &mut Option<Fault>,
        backoff: &mut DefaultBackoff,
    ) -> Result<(), Stopped> {
        let config = watcher::Config::default().labels(keys::OWNER_NAME_LABEL);
        let mut events = pin!(watcher::watcher(api.clone(), config));
        let mut listed = HashSet::new();
        while let Some(event) = self.meanwhile(events.next(), told).await? {
            match event {
                Ok(event) => {
                    let owners: HashSet<String> = self.take(event, &mut listed).into_iter().collect();
                    self.wake(owners).await?;
                    if self.shared.health.lock().sound() {
                        backoff.reset();
                    }
                }
                Err(error) => {
                    tracing::debug!(kind = self.kind, %error, "watch of managed objects failed; trying again");
                    self.shared
                        .health
                        .lock()
                        .failed(Fault::of(&error), Instant::now());
                    break;
                }
            }
        }
        Ok(())
    }

    /// Waits for `work`, and tells meanwhile what the time changes.
    async fn meanwhile<T>(
        &self,
        work: impl Future<Output = T>,
        told: &mut Option<Fault>,
    ) -> Result<T, Stopped> {
        let mut work = pin!(work);
        loop {
            self.tell(told).await?;
            let now = Instant::now();
            let due = self.shared.health.lock().due(now);
            let Some(due) = due else { return Ok(work.await) };
            tokio::select! {
                done = &mut work => return Ok(done),
                () = tokio::time::sleep(due.saturating_duration_since(now) + Duration::from_millis(1)) => {}
            }
        }
    }

    /// Wakes every revision that needs the kind when the watch begins to fail, fails for another cause, or is back.
    async fn tell(&self, told: &mut Option<Fault>) -> Result<(), Stopped> {
        let failing = {
            let mut health = self.shared.health.lock();
            let now = Instant::now();
            health.tick(now);
            health.failing(now)
        };
        if failing == *told {
            return Ok(());
        }
        if let Some(fault) = &failing {
            tracing::warn!(
                kind = self.kind,
                reason = fault.cause.as_str(),
                error = fault.text,
                "objects of this kind are not watched; they are read on an interval until the watch is back"
            );
        } else {
            tracing::info!(kind = self.kind, "objects of this kind are watched again");
        }
        *told = failing;
        let users: Vec<String> = self.shared.users.lock().values().cloned().collect();
        self.wake(users).await
    }

    async fn wake(&self, owners: impl IntoIterator<Item = String>) -> Result<(), Stopped> {
        for owner in owners {
            let sent = self.triggers.send(ObjectRef::new(&owner)).await;
            sent.map_err(|_| Stopped)?;
        }
        Ok(())
    }

    /// Remembers what an event tells; returns the revisions to wake.
    fn take(&self, event: Event<Objects>, listed: &mut HashSet<Key>) -> Vec<String> {
        let cache = &self.shared.cache;
        match event {
            Event::Apply(object) => note(cache, object.meta()).1,
            Event::InitApply(object) => {
                let (key, owners) = note(cache, object.meta());
                listed.insert(key);
                owners
            }
            Event::Delete(object) => {
                let mut owners = owners_of(object.meta());
                let key = key_of(object.meta());
                let mut cache = cache.lock();
                if let Some((_, known)) = cache.objects.remove(&key) {
                    owners.extend(known);
                }
                cache.bury(key);
                owners
            }
            Event::Init => {
                listed.clear();
                self.shared.health.lock().listing(Instant::now());
                Vec::new()
            }
            Event::InitDone => {
                let mut owners = cache.lock().complete(&std::mem::take(listed));
                let again = self.shared.health.lock().listed(Instant::now());
                if again {
                    // What came and went in between is in no list.
                    owners.extend(self.shared.users.lock().values().cloned());
                }
                owners
            }
        }
    }
}
