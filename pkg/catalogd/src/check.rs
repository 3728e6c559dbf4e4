//! Looks whether stored content is still what was stored.
//!
//! All files of all served content are read in turn, as they are open for clients, at a rate that disturbs nobody, and
//! compared with the digests of their manifests. Content that differs is given up: it is not served any more, and the
//! controller pulls it again.

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
    storage::{CatalogName, Generation, StorageError, Store},
};

/// Bytes that are read in a second.
const RATE: u64 = 16 * 1024 * 1024;
/// Longest sleep before the process's end is noticed.
const NAP: Duration = Duration::from_millis(100);

/// Checker of stored content, with the recipients of its findings.
pub struct Checker {
    /// The served content.
    pub store: Arc<Store>,
    /// Counts of damages.
    pub metrics: Metrics,
}

impl Checker {
    /// Checks everything every `interval`, or never if that is zero, until `shutdown`.
    pub async fn run(&self, interval: Duration, shutdown: CancellationToken) {
        while !interval.is_zero() {
            let pause = tokio::time::sleep(interval);
            if shutdown.run_until_cancelled(pause).await.is_none() {
                return;
            }
            let began = Instant::now();
            for (name, generation) in self.store.serving() {
                self.check(name, generation, &shutdown).await;
            }
            tracing::debug!(took_ms = began.elapsed().as_millis(), "stored content checked");
        }
    }

    async fn check(&self, name: CatalogName, generation: Arc<Generation>, shutdown: &CancellationToken) {
        let (checked, ends) = (generation.clone(), shutdown.clone());
        let verified = tokio::task::spawn_blocking(move || {
            let pace = Pace::new();
            checked.verify(&|bytes| pace.go_on(bytes, &ends))
        });
        let damage = match verified.await {
            Ok(Err(error)) if !matches!(error, StorageError::Interrupted) => error,
            _ => return,
        };
        let guard = self.store.lock(&name).await;
        let (store, metrics) = (self.store.clone(), self.metrics.clone());
        let given_up = tokio::task::spawn_blocking(move || {
            let _guard = guard;
            if store.give_up(&name, &generation, &damage) {
                let error = olm_runtime::telemetry::chain(&damage);
                tracing::error!(catalog = %name, error, "stored content is damaged: not served any more, pulled again");
                metrics.found_damage();
            }
        });
        if let Err(error) = given_up.await {
            tracing::warn!(%error, "damaged content is not given up before the next check");
        }
    }
}

/// Keeps reading to [`RATE`].
struct Pace {
    began: Instant,
    read: AtomicU64,
}

impl Pace {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            read: AtomicU64::new(0),
        }
    }

    /// Sleeps if reading is ahead of time. Returns whether to go on.
    fn go_on(&self, bytes: u64, shutdown: &CancellationToken) -> bool {
        let read = self.read.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let due = Duration::from_millis(read * 1000 / RATE);
        while let Some(ahead) = due
            .checked_sub(self.began.elapsed())
            .filter(|ahead| !ahead.is_zero())
        {
            if shutdown.is_cancelled() {
                return false;
            }
            thread::sleep(ahead.min(NAP));
        }
        !shutdown.is_cancelled()
    }
}
