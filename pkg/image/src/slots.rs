//! Limits on concurrent pulls, per registry and in total, and on concurrent lookups of tags, per registry.
//!
//! A pull waits for its registry first, so that the queue of a slow registry blocks no slots of others. Slots are
//! granted in the order of arrival. Unpacking has separate slots, because it takes memory and CPU.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{error::Error, limits::PullLimits, registry::RegistryError};

/// Maximum number of images unpacked concurrently: a decoder's window takes up to 32 MiB.
const MAX_UNPACKING: usize = 2;
/// Maximum number of tags looked up concurrently in one registry: each lookup holds connections and TLS settings.
const MAX_RESOLVING: usize = 8;

/// Slots of concurrent work with registries.
#[derive(Debug)]
pub(crate) struct PullSlots {
    limits: PullLimits,
    pulling: RegistrySlots,
    resolving: RegistrySlots,
    all: Arc<Semaphore>,
    unpacking: Arc<Semaphore>,
}

/// Work with a registry that needs a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotKind {
    /// Lookup of a tag.
    Resolve,
    Pull,
}

/// Held slot; dropping it releases the slot.
#[derive(Debug)]
pub(crate) struct PullSlot {
    _of_registry: OwnedSemaphorePermit,
    _of_all: Option<OwnedSemaphorePermit>,
}

/// Slots of one kind by registry.
#[derive(Debug)]
struct RegistrySlots {
    /// Maximum per registry.
    max: usize,
    slots: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl RegistrySlots {
    fn new(max: usize) -> Self {
        Self {
            max: max.max(1),
            slots: Mutex::default(),
        }
    }

    fn of(&self, host: &str) -> Arc<Semaphore> {
        let max = self.max;
        let mut registries = self.slots.lock();
        // Catalogs may name any number of registries: unused entries are dropped.
        registries.retain(|_, slots| Arc::strong_count(slots) > 1 || slots.available_permits() < max);
        let slots = registries.entry(host.to_owned());
        slots.or_insert_with(|| Arc::new(Semaphore::new(max))).clone()
    }
}

impl PullSlots {
    pub(crate) fn new(limits: PullLimits) -> Self {
        Self {
            limits,
            pulling: RegistrySlots::new(limits.per_registry),
            resolving: RegistrySlots::new(MAX_RESOLVING),
            all: Arc::new(Semaphore::new(limits.total.max(1))),
            unpacking: Arc::new(Semaphore::new(MAX_UNPACKING)),
        }
    }

    /// Waits for a slot for work with the registry `host`.
    ///
    /// # Errors
    /// [`RegistryError::Busy`] after [`PullLimits::wait`].
    pub(crate) async fn take(&self, kind: SlotKind, host: &str) -> Result<PullSlot, RegistryError> {
        let (of_kind, work) = match kind {
            SlotKind::Resolve => (&self.resolving, "lookups of tags"),
            SlotKind::Pull => (&self.pulling, "pulls"),
        };
        let busy = || RegistryError::Busy {
            host: host.to_owned(),
            work,
            limit: of_kind.max,
            waited: self.limits.wait,
        };
        let slot = async {
            let of_registry = of_kind.of(host).acquire_owned().await.ok()?;
            let of_all = match kind {
                SlotKind::Resolve => None,
                SlotKind::Pull => Some(self.all.clone().acquire_owned().await.ok()?),
            };
            Some(PullSlot {
                _of_registry: of_registry,
                _of_all: of_all,
            })
        };
        let slot = tokio::time::timeout(self.limits.wait, slot).await;
        slot.ok().flatten().ok_or_else(busy)
    }

    /// Waits for a slot to unpack.
    pub(crate) async fn unpack(&self) -> Result<OwnedSemaphorePermit, Error> {
        let slot = self.unpacking.clone().acquire_owned().await;
        slot.map_err(|_| Error::Interrupted)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use std::time::Duration;

    use super::*;

    fn slots(per_registry: usize, total: usize) -> PullSlots {
        PullSlots::new(PullLimits {
            per_registry,
            total,
            wait: Duration::from_millis(20),
        })
    }

    async fn pull(slots: &PullSlots, host: &str) -> Result<PullSlot, RegistryError> {
        slots.take(SlotKind::Pull, host).await
    }

    #[tokio::test]
    async fn a_busy_registry_does_not_delay_others() {
        let slots = slots(2, 3);
        let first = pull(&slots, "slow").await.unwrap();
        let _second = pull(&slots, "slow").await.unwrap();
        let mut queue: Vec<_> = (0..10).map(|_| Box::pin(pull(&slots, "slow"))).collect();
        for queued in &mut queue {
            assert!(queued.as_mut().now_or_never().is_none());
        }
        let other = pull(&slots, "other").now_or_never();
        assert!(other.is_some_and(|slot| slot.is_ok()), "one turn in all is left");
        drop(first);
        let next = queue.first_mut().unwrap().as_mut().now_or_never();
        assert!(
            next.is_some_and(|slot| slot.is_ok()),
            "the first that waits is next"
        );
        assert!(queue.last_mut().unwrap().as_mut().now_or_never().is_none());
    }

    #[tokio::test]
    async fn lookups_of_tags_wait_for_their_registry_only() {
        let slots = slots(1, 1);
        let _pulling = pull(&slots, "slow").await.unwrap();
        let lookup = |host| slots.take(SlotKind::Resolve, host);
        let mut held = Vec::new();
        for _ in 0..MAX_RESOLVING {
            held.push(lookup("slow").await.unwrap());
        }
        assert!(lookup("slow").now_or_never().is_none());
        assert!(lookup("other").now_or_never().is_some());
        held.pop();
        assert!(lookup("slow").now_or_never().is_some());
    }

    #[tokio::test]
    async fn waiting_ends_in_words() {
        let slots = slots(1, 1);
        let held = pull(&slots, "slow").await.unwrap();
        let error = pull(&slots, "slow").await.unwrap_err().to_string();
        assert_eq!(
            error,
            "1 pulls from registry slow are in progress, and this one waited 20ms for a slot; it is retried later"
        );
        drop(held);
        assert!(pull(&slots, "slow").await.is_ok());
        let lookup = || slots.take(SlotKind::Resolve, "slow");
        let _held = futures::future::join_all((0..MAX_RESOLVING).map(|_| lookup())).await;
        let error = lookup().await.unwrap_err().to_string();
        assert!(
            error.starts_with("8 lookups of tags from registry slow are in progress, and this one waited"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn registries_are_forgotten() {
        let slots = slots(1, 1);
        let _kept = slots.pulling.of("kept");
        for number in 0..100 {
            drop(pull(&slots, &format!("r{number}")).await.unwrap());
        }
        assert!(slots.pulling.slots.lock().len() <= 2);
    }
}
