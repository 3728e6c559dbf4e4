//! Periodic check of stored content.
//!
//! The check reads all files of all served content through the file handles that clients use, at a limited rate, and
//! compares their digests with the manifests. Damaged content is discarded; the controller pulls it again.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use crate::{
    metrics::Metrics,
    storage::{Generation, StorageError, Store, ValidCatalogName},
};

/// Read rate in bytes per second.
const RATE: u64 = 16 * 1024 * 1024;
/// Maximum sleep between two looks at the shutdown signal.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// Checker of stored content, with the recipients of its findings.
pub struct Checker {
    /// The served content.
    pub store: Arc<Store>,
    /// Counters of damage.
    pub metrics: Metrics,
}

impl Checker {
    /// Checks all content every `interval` until `shutdown`; a zero interval disables the check.
    pub async fn run(&self, interval: Duration, shutdown: CancellationToken) {
        while !interval.is_zero() {
            let pause = tokio::time::sleep(interval);
            if shutdown.run_until_cancelled(pause).await.is_none() {
                return;
            }
            let started = Instant::now();
            for (name, generation) in self.store.serving() {
                self.check(name, generation, &shutdown).await;
            }
            tracing::debug!(took_ms = started.elapsed().as_millis(), "stored content checked");
        }
    }

    async fn check(&self, name: ValidCatalogName, generation: Arc<Generation>, shutdown: &CancellationToken) {
        let (checked, ends) = (generation.clone(), shutdown.clone());
        let result = tokio::task::spawn_blocking(move || {
            let throttle = Throttle::new();
            checked.verify(&|bytes| throttle.wait(bytes, &ends))
        });
        let damage = match result.await {
            Ok(Err(error)) if !matches!(error, StorageError::Interrupted) => error,
            _ => return,
        };
        let guard = self.store.lock(&name).await;
        let (store, metrics) = (self.store.clone(), self.metrics.clone());
        let discarded = tokio::task::spawn_blocking(move || {
            let _guard = guard;
            if store.discard_damaged(&name, &generation, &damage) {
                let error = olm_text::chain(&damage);
                tracing::error!(catalog = %name, error, "stored content is damaged; discarded, pulling it again");
                metrics.count_damage();
            }
        });
        if let Err(error) = discarded.await {
            tracing::warn!(%error, "could not discard damaged content before the next check");
        }
    }
}

/// Limits reading to [`RATE`].
struct Throttle {
    started: Instant,
    read: AtomicU64,
}

impl Throttle {
    fn new() -> Self {
        Self {
            started: Instant::now(),
            read: AtomicU64::new(0),
        }
    }

    /// Sleeps while reading is ahead of [`RATE`]. Returns false at shutdown.
    fn wait(&self, bytes: u64, shutdown: &CancellationToken) -> bool {
        let read = self.read.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let due = Duration::from_millis(read * 1000 / RATE);
        while let Some(ahead) = due
            .checked_sub(self.started.elapsed())
            .filter(|ahead| !ahead.is_zero())
        {
            if shutdown.is_cancelled() {
                return false;
            }
            thread::sleep(ahead.min(MAX_SLEEP));
        }
        !shutdown.is_cancelled()
    }
}
