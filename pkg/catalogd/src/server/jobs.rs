//! Blocking work for responses, limited in number.
//!
//! A client that resets its request frees the request's slot at once. Without limit here, such a client queues work
//! faster than it ends, and the reads of other clients wait behind it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{JoinError, JoinHandle, spawn_blocking},
};
use tokio_util::task::AbortOnDropHandle;

/// Maximum number of concurrent jobs: more than the processors and a disk serve at once, and far fewer than the threads
/// of the runtime, so that the work of the controller never waits for them.
const MAX_JOBS: usize = 32;

/// Starts jobs; clones share the limit.
#[derive(Clone, Debug)]
pub(super) struct Jobs(Arc<Semaphore>);

/// Flag that tells a job that its response was dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct Abandoned(Arc<AtomicBool>);

/// Sets the flag when the response is dropped.
struct AbandonOnDrop(Abandoned);

impl Default for Jobs {
    fn default() -> Self {
        Self::limited(MAX_JOBS)
    }
}

impl Jobs {
    /// Runs at most `limit` jobs at once.
    pub(super) fn limited(limit: usize) -> Self {
        Self(Arc::new(Semaphore::new(limit)))
    }

    /// Runs a job on a blocking thread, once there are few enough. If the returned future is dropped, the job never
    /// starts, or sees the flag.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Abandoned) -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let (permits, abandoned) = (self.0.clone(), Abandoned::default());
        let _on_drop = AbandonOnDrop(abandoned.clone());
        if let Ok(permit) = permits.clone().try_acquire_owned() {
            return start(Some(permit), job, abandoned).await;
        }
        // A connection polls the body of a response only while its client reads. A task of its own waits, so that the
        // permit never goes to a client that stalls.
        let waiting = AbortOnDropHandle::new(tokio::spawn(async move {
            // The semaphore is never closed.
            let permit = permits.acquire_owned().await.ok();
            start(permit, job, abandoned).await
        }));
        waiting.await?
    }
}

/// Starts a job. It has the permit until it ends, whether or not its response still exists.
fn start<T: Send + 'static>(
    permit: Option<OwnedSemaphorePermit>,
    job: impl FnOnce(&Abandoned) -> T + Send + 'static,
    abandoned: Abandoned,
) -> JoinHandle<T> {
    spawn_blocking(move || {
        let _permit = permit;
        job(&abandoned)
    })
}

impl Abandoned {
    /// Returns true if nobody waits for the job.
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{atomic::AtomicUsize, mpsc};

    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn dropped_work_neither_queues_nor_goes_on() {
        let jobs = Jobs::limited(1);
        let (stopped, stops) = mpsc::channel();
        let first = jobs.run(move |abandoned| {
            while !abandoned.is_set() {
                std::thread::yield_now();
            }
            stopped.send(()).unwrap();
        });
        let mut first = Box::pin(first);
        assert!((&mut first).now_or_never().is_none());
        let started = Arc::new(AtomicUsize::new(0));
        for _ in 0..100 {
            let started = started.clone();
            let dropped = jobs.run(move |_| started.fetch_add(1, Ordering::Relaxed));
            assert!(dropped.now_or_never().is_none(), "the first job still runs");
        }
        drop(first);
        stops.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
        assert!(!jobs.run(Abandoned::is_set).await.unwrap());
        assert_eq!(started.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_client_that_stalls_keeps_no_permit() {
        let jobs = Jobs::limited(1);
        let (release, released) = mpsc::channel::<()>();
        let mut first = Box::pin(jobs.run(move |_| released.recv()));
        assert!((&mut first).now_or_never().is_none());
        let mut stalled = Box::pin(jobs.run(|_| ()));
        assert!((&mut stalled).now_or_never().is_none());
        release.send(()).unwrap();
        let other = tokio::time::timeout(std::time::Duration::from_secs(30), jobs.run(|_| ()));
        other.await.unwrap().unwrap();
        drop(stalled);
    }
}
