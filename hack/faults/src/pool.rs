//! Workers that take the cases of a run from one queue.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Result;
use futures::future::try_join_all;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Numbers of the cases that no worker has taken yet.
#[derive(Debug)]
pub(crate) struct Queue {
    left: Mutex<VecDeque<u64>>,
    /// Time after which the queue counts as empty.
    end: Option<Instant>,
}

impl Queue {
    /// Returns a queue that gives no case any more after `limit`, even if cases are left.
    pub(crate) fn new(cases: impl IntoIterator<Item = u64>, limit: Option<Duration>) -> Self {
        Self {
            left: Mutex::new(cases.into_iter().collect()),
            end: limit.and_then(|limit| Instant::now().checked_add(limit)),
        }
    }

    /// Takes the next case; `None` if no case is left or the limit has passed.
    pub(crate) fn take(&self) -> Option<u64> {
        if self.end.is_some_and(|end| Instant::now() >= end) {
            return None;
        }
        self.left.lock().pop_front()
    }

    /// Returns the number of cases that are left.
    pub(crate) fn len(&self) -> usize {
        self.left.lock().len()
    }
}

/// Runs `count` workers until all have ended. One task is enough for them: they mostly wait, and proxies and observers have their
/// own tasks.
///
/// # Errors
/// The first error of a worker, which stops the other workers.
pub(crate) async fn run<W: Future<Output = Result<()>>>(count: usize, work: impl Fn() -> W) -> Result<()> {
    let workers = (0..count).map(|_| work());
    try_join_all(workers).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_case_is_taken_once_and_an_error_ends_the_run() {
        let queue = Queue::new(1..101, None);
        let sum = Mutex::new(0);
        let work = async || {
            while let Some(case) = queue.take() {
                *sum.lock() += case;
                tokio::task::yield_now().await;
            }
            Ok(())
        };
        run(3, work).await.unwrap();
        assert_eq!((*sum.lock(), queue.len()), (5050, 0));
        assert!(
            run(2, || async { anyhow::bail!("no control plane") })
                .await
                .is_err()
        );
        assert_eq!(Queue::new(1..3, Some(Duration::ZERO)).take(), None);
    }
}
