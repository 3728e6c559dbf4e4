//! How often and how long objects are reconciled, under controller-runtime's names, so that dashboards made for upstream
//! show it.
//!
//! What is missing of them is the queue (`workqueue_*`): kube's runtime does not tell what waits in it.

use std::time::Instant;

use kube::runtime::controller::Action;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
};

use super::Registry;
use crate::guard::{Panicked, guard};

/// Upper bounds in seconds, controller-runtime's.
const BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    controller: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfResult {
    controller: &'static str,
    result: &'static str,
}

/// How a reconcile ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing more to do until something changes.
    Success,
    /// All well; to be looked at again later.
    RequeueAfter,
    /// Something failed, and is tried again.
    Error,
}

impl Ended {
    /// How a reconcile ended that asks to be looked at again, or not; `failed` when it is because of a failure.
    #[must_use]
    pub fn of(action: &Action, failed: bool) -> Self {
        if failed {
            Self::Error
        } else if *action == Action::await_change() {
            Self::Success
        } else {
            Self::RequeueAfter
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RequeueAfter => "requeue_after",
            Self::Error => "error",
        }
    }
}

/// The metrics of all controllers of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct Reconciles {
    total: Family<OfResult, Counter>,
    errors: Family<Of, Counter>,
    panics: Family<Of, Counter>,
    seconds: Family<Of, Histogram, fn() -> Histogram>,
    workers: Family<Of, Gauge>,
    active: Family<Of, Gauge>,
}

impl Default for Reconciles {
    /// Shown by nobody.
    fn default() -> Self {
        Self {
            total: Family::default(),
            errors: Family::default(),
            panics: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            workers: Family::default(),
            active: Family::default(),
        }
    }
}

impl Reconciles {
    /// Registers the metrics.
    #[must_use]
    pub fn register(registry: &Registry) -> Self {
        let all = Self::default();
        registry.register(|inner| {
            inner.register(
                "controller_runtime_reconcile",
                "Total number of reconciliations per controller",
                all.total.clone(),
            );
            inner.register(
                "controller_runtime_reconcile_errors",
                "Total number of reconciliation errors per controller",
                all.errors.clone(),
            );
            inner.register(
                "controller_runtime_reconcile_panics",
                "Total number of reconciliation panics per controller",
                all.panics.clone(),
            );
            inner.register(
                "controller_runtime_reconcile_time_seconds",
                "Length of time per reconciliation per controller",
                all.seconds.clone(),
            );
            inner.register(
                "controller_runtime_max_concurrent_reconciles",
                "Maximum number of concurrent reconciles per controller",
                all.workers.clone(),
            );
            inner.register(
                "controller_runtime_active_workers",
                "Number of currently used workers per controller",
                all.active.clone(),
            );
        });
        all
    }

    /// The metrics of the controller `name`, which reconciles up to `workers` objects at once.
    #[must_use]
    pub fn controller(&self, name: &'static str, workers: u16) -> Controller {
        let of = Of { controller: name };
        self.workers.get_or_create(&of).set(i64::from(workers));
        self.active.get_or_create(&of).set(0);
        // Without these a rate over the first failure would show nothing.
        drop(self.errors.get_or_create(&of));
        drop(self.panics.get_or_create(&of));
        for ended in [Ended::Success, Ended::RequeueAfter, Ended::Error] {
            drop(self.total.get_or_create(&OfResult {
                controller: name,
                result: ended.label(),
            }));
        }
        Controller {
            all: self.clone(),
            name,
        }
    }
}

/// The metrics of one controller; by default, such as nobody sees.
#[derive(Clone, Debug, Default)]
pub struct Controller {
    all: Reconciles,
    name: &'static str,
}

impl Controller {
    /// Does one reconcile, counts it by how it `ended`, and notes how long it took. One that is dropped before its end
    /// is not counted.
    pub async fn measure<T>(&self, work: impl Future<Output = T>, ended: impl FnOnce(&T) -> Ended) -> T {
        let of = Of {
            controller: self.name,
        };
        let _active = Active::new(self.all.active.get_or_create_owned(&of));
        let started = Instant::now();
        let done = work.await;
        let seconds = started.elapsed().as_secs_f64();
        let ended = ended(&done);
        self.all.seconds.get_or_create(&of).observe(seconds);
        if ended == Ended::Error {
            self.all.errors.get_or_create(&of).inc();
        }
        let result = OfResult {
            controller: self.name,
            result: ended.label(),
        };
        self.all.total.get_or_create(&result).inc();
        done
    }

    /// Does one reconcile of `object`, of this kind and name; a panic in it is logged and counted, and ends nothing else.
    ///
    /// # Errors
    /// [`Panicked`].
    pub async fn guard<T>(
        &self,
        kind: &'static str,
        object: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, Panicked> {
        let done = guard(work).await;
        if let Err(error) = &done {
            let of = Of {
                controller: self.name,
            };
            self.all.panics.get_or_create(&of).inc();
            tracing::error!(kind, name = object, %error, "reconcile panicked; trying again");
        }
        done
    }
}

/// One worker at work, until it is dropped.
struct Active(Gauge);

impl Active {
    fn new(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn counted_by_how_they_end() {
        let registry = Registry::new();
        let controller = Reconciles::register(&registry).controller("tests", 4);
        let done = controller.measure(async { 7 }, |_| Ended::Success).await;
        assert_eq!(done, 7);
        controller.measure(async {}, |()| Ended::Error).await;
        let failing = async {
            panic!("nothing");
        };
        let ended = controller.guard::<()>("Test", "a", failing);
        assert!(
            ended
                .await
                .unwrap_err()
                .to_string()
                .ends_with("report it: nothing")
        );
        let text = registry.encode().unwrap();
        for line in [
            "controller_runtime_reconcile_total{controller=\"tests\",result=\"success\"} 1",
            "controller_runtime_reconcile_total{controller=\"tests\",result=\"requeue_after\"} 0",
            "controller_runtime_reconcile_total{controller=\"tests\",result=\"error\"} 1",
            "controller_runtime_reconcile_errors_total{controller=\"tests\"} 1",
            "controller_runtime_reconcile_panics_total{controller=\"tests\"} 1",
            "controller_runtime_reconcile_time_seconds_count{controller=\"tests\"} 2",
            "controller_runtime_max_concurrent_reconciles{controller=\"tests\"} 4",
            "controller_runtime_active_workers{controller=\"tests\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} not in\n{text}");
        }
    }
}
