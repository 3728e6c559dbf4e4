//! Workers of a controller: how many reconciles work at the same time.
//!
//! A reconcile that waits for somebody else, such as a registry, steps aside: another one works meanwhile. So a few slow
//! registries hold up nobody else, however few workers there are.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

tokio::task_local! {
    /// The place of the reconcile that is polled.
    static PLACE: Arc<Place>;
}

/// The workers of one controller. Turns are given in the order of arrival.
#[derive(Clone, Debug)]
pub struct Workers(Arc<Semaphore>);

/// One reconcile's hold on a worker.
#[derive(Debug)]
struct Place {
    workers: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    worker: Option<OwnedSemaphorePermit>,
    /// Waits under way; a reconcile may wait for several things at once.
    aside: usize,
}

impl Workers {
    /// So many workers, at least one.
    pub fn new(count: u16) -> Self {
        Self(Arc::new(Semaphore::new(usize::from(count.max(1)))))
    }

    /// Waits for a worker, then does the work with it.
    pub async fn employ<F: Future>(&self, work: F) -> F::Output {
        let place = Place {
            workers: self.0.clone(),
            // The semaphore is never closed.
            state: Mutex::new(State {
                worker: self.0.clone().acquire_owned().await.ok(),
                aside: 0,
            }),
        };
        PLACE.scope(Arc::new(place), work).await
    }

    /// Number of workers that are free.
    pub fn free(&self) -> usize {
        self.0.available_permits()
    }
}

/// Waits for `what` without a worker, then waits for one again. Outside of [`Workers::employ`] it only waits for `what`.
pub async fn aside<F: Future>(what: F) -> F::Output {
    let Ok(place) = PLACE.try_with(Arc::clone) else {
        return what.await;
    };
    let waiting = Waiting::start(&place);
    let done = what.await;
    drop(waiting);
    place.come_back().await;
    done
}

/// One wait; dropped, it is over.
struct Waiting<'a>(&'a Place);

impl<'a> Waiting<'a> {
    fn start(place: &'a Place) -> Self {
        let mut state = place.state.lock();
        state.aside += 1;
        state.worker = None;
        Self(place)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.lock().aside -= 1;
    }
}

impl Place {
    /// Waits for a worker, unless the reconcile has one or still waits for something else.
    async fn come_back(&self) {
        let wanted = {
            let state = self.state.lock();
            state.aside == 0 && state.worker.is_none()
        };
        if !wanted {
            return;
        }
        let worker = self.workers.clone().acquire_owned().await.ok();
        let mut state = self.state.lock();
        if state.aside == 0 && state.worker.is_none() {
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
    async fn who_waits_for_others_keeps_no_worker() {
        let workers = Workers::new(1);
        let answer = Notify::new();
        let mut slow = Box::pin(workers.employ(async {
            aside(answer.notified()).await;
            workers.free()
        }));
        assert!(slow.as_mut().now_or_never().is_none());
        assert_eq!(workers.free(), 1);
        // Another reconcile works meanwhile, and the slow one waits for its end.
        let end = Notify::new();
        let mut other = Box::pin(workers.employ(end.notified()));
        assert!(other.as_mut().now_or_never().is_none());
        answer.notify_one();
        assert!(slow.as_mut().now_or_never().is_none(), "its worker is taken");
        end.notify_one();
        other.await;
        assert_eq!(slow.await, 0, "it works with a worker again");
        assert_eq!(workers.free(), 1);
    }

    #[tokio::test]
    async fn a_worker_works_for_one_at_a_time() {
        let workers = Workers::new(1);
        let end = Notify::new();
        let mut first = Box::pin(workers.employ(end.notified()));
        assert!(first.as_mut().now_or_never().is_none());
        let mut second = Box::pin(workers.employ(async { 2 }));
        assert!(second.as_mut().now_or_never().is_none());
        end.notify_one();
        first.await;
        assert_eq!(second.await, 2);
    }

    #[tokio::test]
    async fn several_waits_at_once_come_back_once() {
        let workers = Workers::new(1);
        let (one, two) = (Notify::new(), Notify::new());
        let mut work = Box::pin(workers.employ(async {
            futures::join!(aside(one.notified()), aside(two.notified()));
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
    async fn a_wait_that_is_given_up_is_over() {
        let workers = Workers::new(1);
        let work = workers.employ(async {
            assert!(aside(std::future::pending::<()>()).now_or_never().is_none());
            aside(std::future::ready(())).await;
            workers.free()
        });
        assert_eq!(work.await, 0);
        assert_eq!(aside(async { 7 }).await, 7, "without a controller");
    }
}
