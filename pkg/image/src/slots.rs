//! Limits on concurrent pulls, per registry and in total.
//!
//! A pull waits for its registry first, so that the queue of a slow registry blocks no slots of others. Slots are
//! granted in the order of arrival. Unpacking has separate slots, because it takes memory and CPU.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{error::Error, limits::PullLimits, registry::RegistryError};

/// Maximum number of images unpacked concurrently: a decoder's window takes up to 32 MiB.
const MAX_UNPACKING: usize = 2;

/// Slots of concurrent pulls.
#[derive(Debug)]
pub(crate) struct PullSlots {
    limits: PullLimits,
    registries: Mutex<HashMap<String, Arc<Semaphore>>>,
    all: Arc<Semaphore>,
    unpacking: Arc<Semaphore>,
}

/// Held slot; dropping it releases the slot.
#[derive(Debug)]
pub(crate) struct PullSlot {
    _of_registry: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl PullSlots {
    pub(crate) fn new(limits: PullLimits) -> Self {
        Self {
            limits,
            registries: Mutex::default(),
            all: Arc::new(Semaphore::new(limits.total.max(1))),
            unpacking: Arc::new(Semaphore::new(MAX_UNPACKING)),
        }
    }

    /// Waits for a slot to pull from the registry `host`.
    ///
    /// # Errors
    /// [`RegistryError::Busy`] after [`PullLimits::wait`].
    pub(crate) async fn pull(&self, host: &str) -> Result<PullSlot, RegistryError> {
        let busy = || RegistryError::Busy {
            host: host.to_owned(),
            limit: self.limits.per_registry,
            waited: self.limits.wait,
        };
        let slot = async {
            let of_registry = self.registry(host).acquire_owned().await.ok()?;
            let of_all = self.all.clone().acquire_owned().await.ok()?;
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

    fn registry(&self, host: &str) -> Arc<Semaphore> {
        let max = self.limits.per_registry.max(1);
        let mut registries = self.registries.lock();
        // Catalogs may name any number of registries: unused entries are dropped.
        registries.retain(|_, slots| Arc::strong_count(slots) > 1 || slots.available_permits() < max);
        let slots = registries.entry(host.to_owned());
        slots.or_insert_with(|| Arc::new(Semaphore::new(max))).clone()
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

    #[tokio::test]
    async fn a_busy_registry_does_not_delay_others() {
        let slots = slots(2, 3);
        let first = slots.pull("slow").await.unwrap();
        let _second = slots.pull("slow").await.unwrap();
        let mut queue: Vec<_> = (0..10).map(|_| Box::pin(slots.pull("slow"))).collect();
        for queued in &mut queue {
            assert!(queued.as_mut().now_or_never().is_none());
        }
        let other = slots.pull("other").now_or_never();
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
    async fn waiting_ends_in_words() {
        let slots = slots(1, 1);
        let held = slots.pull("slow").await.unwrap();
        let error = slots.pull("slow").await.unwrap_err().to_string();
        assert_eq!(
            error,
            "1 pulls from registry slow are in progress, and this one waited 20ms for a slot; it is retried later"
        );
        drop(held);
        assert!(slots.pull("slow").await.is_ok());
    }

    #[tokio::test]
    async fn registries_are_forgotten() {
        let slots = slots(1, 1);
        let _kept = slots.registry("kept");
        for number in 0..100 {
            drop(slots.pull(&format!("r{number}")).await.unwrap());
        }
        assert!(slots.registries.lock().len() <= 2);
    }
}
