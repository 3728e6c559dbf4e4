//! Number and duration of reconciles, under controller-runtime's names for dashboards made for upstream.
//!
//! The metrics of the queue (`workqueue_*`) are missing: kube's runtime does not expose them.

use std::time::Instant;

use kube::runtime::controller::Action;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
};

use super::{Description, Registry};
use crate::guard::{Panicked, guard};

/// Upper bounds in seconds, controller-runtime's.
const BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

const TOTAL: Description = Description::counter(
    "controller_runtime_reconcile",
    &["controller", "result"],
    "Total number of reconciliations per controller",
);
const ERRORS: Description = Description::counter(
    "controller_runtime_reconcile_errors",
    &["controller"],
    "Total number of reconciliation errors per controller",
);
const PANICS: Description = Description::counter(
    "controller_runtime_reconcile_panics",
    &["controller"],
    "Total number of reconciliation panics per controller",
);
const SECONDS: Description = Description::histogram(
    "controller_runtime_reconcile_time_seconds",
    &["controller"],
    "Length of time per reconciliation per controller",
);
const WORKERS: Description = Description::gauge(
    "controller_runtime_max_concurrent_reconciles",
    &["controller"],
    "Maximum number of concurrent reconciles per controller",
);
const ACTIVE: Description = Description::gauge(
    "controller_runtime_active_workers",
    &["controller"],
    "Number of currently used workers per controller",
);
pub(super) const DESCRIPTIONS: [Description; 6] = [TOTAL, ERRORS, PANICS, SECONDS, WORKERS, ACTIVE];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ControllerLabels {
    controller: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabels {
    controller: &'static str,
    result: &'static str,
}

/// Result of a reconcile, as controller-runtime labels it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReconcileResult {
    /// The reconcile succeeded and waits for a change.
    Success,
    /// The reconcile succeeded and is repeated later.
    RequeueAfter,
    /// The reconcile failed and is retried.
    Error,
}

impl ReconcileResult {
    /// Returns the result for `action`; `failed` if the action is the retry of a failure.
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

/// Metrics of all controllers of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct ReconcileMetrics {
    total: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    panics: Family<ControllerLabels, Counter>,
    seconds: Family<ControllerLabels, Histogram, fn() -> Histogram>,
    workers: Family<ControllerLabels, Gauge>,
    active: Family<ControllerLabels, Gauge>,
}

impl Default for ReconcileMetrics {
    /// Returns metrics that are not registered.
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

impl ReconcileMetrics {
    /// Registers the metrics.
    #[must_use]
    pub fn register(registry: &Registry) -> Self {
        let all = Self::default();
        registry.register(|inner| {
            TOTAL.register(inner, all.total.clone());
            ERRORS.register(inner, all.errors.clone());
            PANICS.register(inner, all.panics.clone());
            SECONDS.register(inner, all.seconds.clone());
            WORKERS.register(inner, all.workers.clone());
            ACTIVE.register(inner, all.active.clone());
        });
        all
    }

    /// Returns the metrics of the controller `name`, which runs up to `workers` reconciles at once.
    #[must_use]
    pub fn controller(&self, name: &'static str, workers: u16) -> ControllerMetrics {
        let labels = ControllerLabels { controller: name };
        self.workers.get_or_create(&labels).set(i64::from(workers));
        self.active.get_or_create(&labels).set(0);
        // A rate over the first failure requires an initial zero.
        drop(self.errors.get_or_create(&labels));
        drop(self.panics.get_or_create(&labels));
        for result in [
            ReconcileResult::Success,
            ReconcileResult::RequeueAfter,
            ReconcileResult::Error,
        ] {
            drop(self.total.get_or_create(&ResultLabels {
                controller: name,
                result: result.label(),
            }));
        }
        ControllerMetrics {
            all: self.clone(),
            name,
        }
    }
}

/// Metrics of one controller; unregistered by default.
#[derive(Clone, Debug, Default)]
pub struct ControllerMetrics {
    all: ReconcileMetrics,
    name: &'static str,
}

impl ControllerMetrics {
    /// Runs a reconcile and records its result and duration. A reconcile that is dropped early is not counted.
    pub async fn measure<T>(
        &self,
        work: impl Future<Output = T>,
        result: impl FnOnce(&T) -> ReconcileResult,
    ) -> T {
        let labels = ControllerLabels {
            controller: self.name,
        };
        let _worker = ActiveWorker::new(self.all.active.get_or_create_owned(&labels));
        let started = Instant::now();
        let output = work.await;
        let seconds = started.elapsed().as_secs_f64();
        let result = result(&output);
        self.all.seconds.get_or_create(&labels).observe(seconds);
        if result == ReconcileResult::Error {
            self.all.errors.get_or_create(&labels).inc();
        }
        let result = ResultLabels {
            controller: self.name,
            result: result.label(),
        };
        self.all.total.get_or_create(&result).inc();
        output
    }

    /// Runs a reconcile of `object`, of this kind and name; a panic is caught, logged and counted.
    ///
    /// # Errors
    /// [`Panicked`].
    pub async fn guard<T>(
        &self,
        kind: &'static str,
        object: &str,
        work: impl Future<Output = T>,
    ) -> Result<T, Panicked> {
        let output = guard(work).await;
        if let Err(error) = &output {
            let labels = ControllerLabels {
                controller: self.name,
            };
            self.all.panics.get_or_create(&labels).inc();
            tracing::error!(kind, name = object, %error, "reconcile panicked; retrying");
        }
        output
    }
}

/// Counts an active worker until it is dropped.
struct ActiveWorker(Gauge);

impl ActiveWorker {
    fn new(gauge: Gauge) -> Self {
        gauge.inc();
        Self(gauge)
    }
}

impl Drop for ActiveWorker {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn reconciles_are_counted_by_result() {
        let registry = Registry::new();
        let controller = ReconcileMetrics::register(&registry).controller("tests", 4);
        let output = controller
            .measure(async { 7 }, |_| ReconcileResult::Success)
            .await;
        assert_eq!(output, 7);
        controller.measure(async {}, |()| ReconcileResult::Error).await;
        let failing = async {
            panic!("nothing");
        };
        let result = controller.guard::<()>("Test", "a", failing);
        assert!(
            result
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
