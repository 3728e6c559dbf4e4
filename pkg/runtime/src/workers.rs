//! Workers of a controller: the limit of concurrent reconciles.
//!
//! A reconcile that waits for a remote system, such as a registry, releases its worker for another reconcile. Thus a
//! few slow registries delay no other reconciles, even with few workers.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

tokio::task_local! {
    /// Slot of the reconcile that is being polled.
    static CURRENT_SLOT: Arc<WorkerSlot>;
}

/// Workers of one controller, granted in the order of arrival.
#[derive(Clone, Debug)]
pub struct Workers(Arc<Semaphore>);

/// A reconcile's claim to a worker.
#[derive(Debug)]
struct WorkerSlot {
    workers: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    worker: Option<OwnedSemaphorePermit>,
    /// Number of concurrent waits without a worker.
    waits: usize,
}

impl Workers {
    /// Creates `count` workers, at least one.
    pub fn new(count: u16) -> Self {
        Self(Arc::new(Semaphore::new(usize::from(count.max(1)))))
    }

    /// Waits for a worker, then runs `work` with it.
    pub async fn run<F: Future>(&self, work: F) -> F::Output {
        let slot = WorkerSlot {
            workers: self.0.clone(),
            // The semaphore is never closed.
            state: Mutex::new(State {
                worker: self.0.clone().acquire_owned().await.ok(),
                waits: 0,
            }),
        };
        CURRENT_SLOT.scope(Arc::new(slot), work).await
    }

    /// Returns the number of free workers.
    pub fn free(&self) -> usize {
        self.0.available_permits()
    }
}

/// Runs `wait` without a worker, then waits for a worker again. Outside of [`Workers::run`] it only runs `wait`.
pub async fn without_worker<F: Future>(wait: F) -> F::Output {
    let Ok(slot) = CURRENT_SLOT.try_with(Arc::clone) else {
        return wait.await;
    };
    let guard = WaitGuard::start(&slot);
    let output = wait.await;
    drop(guard);
    slot.reacquire().await;
    output
}

/// A wait, which ends on drop.
struct WaitGuard<'a>(&'a WorkerSlot);

impl<'a> WaitGuard<'a> {
    fn start(slot: &'a WorkerSlot) -> Self {
        let mut state = slot.state.lock();
        state.waits += 1;
        state.worker = None;
        Self(slot)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waits -= 1;
    }
}

impl WorkerSlot {
    /// Waits for a worker, unless the reconcile has one or is in another wait.
    async fn reacquire(&self) {
        let needs_worker = {
            let state = self.state.lock();
            state.waits == 0 && state.worker.is_none()
        };
        if !needs_worker {
            return;
        }
        let worker = self.workers.clone().acquire_owned().await.ok();
        let mut state = self.state.lock();
        if state.waits == 0 && state.worker.is_none() {
            state.worker = worker;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn a_waiting_reconcile_releases_its_worker() {
        let workers = Workers::new(1);
        let answer = Notify::new();
        let mut slow = Box::pin(workers.run(async {
            without_worker(answer.notified()).await;
            workers.free()
        }));
        assert!(slow.as_mut().now_or_never().is_none());
        assert_eq!(workers.free(), 1);
        // Another reconcile runs in the meantime, and the slow one waits for its end.
        let end = Notify::new();
        let mut other = Box::pin(workers.run(end.notified()));
        assert!(other.as_mut().now_or_never().is_none());
        answer.notify_one();
        assert!(slow.as_mut().now_or_never().is_none(), "its worker is taken");
        end.notify_one();
        other.await;
        assert_eq!(slow.await, 0, "it works with a worker again");
        assert_eq!(workers.free(), 1);
    }

    #[tokio::test]
    async fn a_worker_runs_one_reconcile_at_a_time() {
        let workers = Workers::new(1);
        let end = Notify::new();
        let mut first = Box::pin(workers.run(end.notified()));
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(workers.run(async { 2 }));
        assert!(second.as_mut().now_or_never().is_none());
        end.notify_one();
        first.await;
        assert_eq!(second.await, 2);
    }

    #[tokio::test]
    async fn concurrent_waits_acquire_one_worker() {
        let workers = Workers::new(1);
        let (one, two) = (Notify::new(), Notify::new());
        let mut work = Box::pin(workers.run(async {
            futures::join!(without_worker(one.notified()), without_worker(two.notified()));
            workers.free()
        }));
        assert!(work.as_mut().now_or_never().is_none());
        one.notify_one();
        assert!(work.as_mut().now_or_never().is_none());
        assert_eq!(workers.free(), 1, "it still waits");
        two.notify_one();
        assert_eq!(work.await, 0);
    }

    #[tokio::test]
    async fn a_dropped_wait_ends() {
        let workers = Workers::new(1);
        let work = workers.run(async {
            assert!(
                without_worker(std::future::pending::<()>())
                    .now_or_never()
                    .is_none()
            );
            without_worker(std::future::ready(())).await;
            workers.free()
        });
        assert_eq!(work.await, 0);
        assert_eq!(without_worker(async { 7 }).await, 7, "without a controller");
    }
}
