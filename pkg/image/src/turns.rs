//! Turns of pulls: limits on pulls at the same time, per registry and in all.
//!
//! A pull waits for its registry first, so that the queue of a slow registry takes no turn from others. Turns are given
//! in the order of arrival. Unpacking has turns of its own, because it takes memory and a processor.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{error::Error, registry::RegistryError};

/// Images that are unpacked at the same time: a decoder's window takes up to 32 MiB.
const UNPACKING: usize = 2;

/// Bounds of the pulls of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullLimits {
    /// Pulls from one registry at the same time.
    pub per_registry: usize,
    /// Pulls from all registries at the same time.
    pub in_all: usize,
    /// Longest time that a pull waits for its turn.
    pub wait: Duration,
}

impl Default for PullLimits {
    /// 4 per registry, 32 in all, 10 minutes.
    fn default() -> Self {
        Self {
            per_registry: 4,
            in_all: 32,
            wait: Duration::from_mins(10),
        }
    }
}

/// Turns of pulls.
#[derive(Debug)]
pub(crate) struct Turns {
    limits: PullLimits,
    registries: Mutex<HashMap<String, Arc<Semaphore>>>,
    all: Arc<Semaphore>,
    unpacking: Arc<Semaphore>,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _of_registry: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Turns {
    pub(crate) fn new(limits: PullLimits) -> Self {
        Self {
            limits,
            registries: Mutex::default(),
            all: Arc::new(Semaphore::new(limits.in_all.max(1))),
            unpacking: Arc::new(Semaphore::new(UNPACKING)),
        }
    }

    /// Waits for a turn to pull from the registry `host`.
    ///
    /// # Errors
    /// [`RegistryError::Busy`] after [`PullLimits::wait`].
    pub(crate) async fn pull(&self, host: &str) -> Result<Turn, RegistryError> {
        let busy = || RegistryError::Busy {
            host: host.to_owned(),
            limit: self.limits.per_registry,
            waited: self.limits.wait,
        };
        let turn = async {
            let of_registry = self.registry(host).acquire_owned().await.ok()?;
            let of_all = self.all.clone().acquire_owned().await.ok()?;
            Some(Turn {
                _of_registry: of_registry,
                _of_all: of_all,
            })
        };
        let turn = tokio::time::timeout(self.limits.wait, turn).await;
        turn.ok().flatten().ok_or_else(busy)
    }

    /// Waits for a turn to unpack.
    pub(crate) async fn unpack(&self) -> Result<OwnedSemaphorePermit, Error> {
        let turn = self.unpacking.clone().acquire_owned().await;
        turn.map_err(|_| Error::Interrupted)
    }

    fn registry(&self, host: &str) -> Arc<Semaphore> {
        let most = self.limits.per_registry.max(1);
        let mut registries = self.registries.lock();
        // Catalogs name any number of registries: those that nobody waits for are forgotten.
        registries.retain(|_, turns| Arc::strong_count(turns) > 1 || turns.available_permits() < most);
        let turns = registries.entry(host.to_owned());
        turns.or_insert_with(|| Arc::new(Semaphore::new(most))).clone()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn turns(per_registry: usize, in_all: usize) -> Turns {
        Turns::new(PullLimits {
            per_registry,
            in_all,
            wait: Duration::from_millis(20),
        })
    }

    #[tokio::test]
    async fn a_busy_registry_takes_no_turn_from_others() {
        let turns = turns(2, 3);
        let first = turns.pull("slow").await.unwrap();
        let _second = turns.pull("slow").await.unwrap();
        let mut queue: Vec<_> = (0..10).map(|_| Box::pin(turns.pull("slow"))).collect();
        for waiting in &mut queue {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        let other = turns.pull("other").now_or_never();
        assert!(other.is_some_and(|turn| turn.is_ok()), "one turn in all is left");
        drop(first);
        let next = queue.first_mut().unwrap().as_mut().now_or_never();
        assert!(
            next.is_some_and(|turn| turn.is_ok()),
            "the first that waits is next"
        );
        assert!(queue.last_mut().unwrap().as_mut().now_or_never().is_none());
    }

    #[tokio::test]
    async fn waiting_ends_in_words() {
        let turns = turns(1, 1);
        let held = turns.pull("slow").await.unwrap();
        let error = turns.pull("slow").await.unwrap_err().to_string();
        assert_eq!(
            error,
            "1 pulls from registry slow are under way, and this one waited 20ms for its turn; it is tried again later"
        );
        drop(held);
        assert!(turns.pull("slow").await.is_ok());
    }

    #[tokio::test]
    async fn registries_are_forgotten() {
        let turns = turns(1, 1);
        let _kept = turns.registry("kept");
        for number in 0..100 {
            drop(turns.pull(&format!("r{number}")).await.unwrap());
        }
        assert!(turns.registries.lock().len() <= 2);
    }
}
