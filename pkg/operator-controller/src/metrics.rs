//! How long the steps of a reconcile take and why they are tried again. All labels are from closed sets.

use std::future::Future;
use std::time::Instant;

use olm_runtime::metrics::Registry;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

/// Upper bounds in seconds: from a resolution in memory to a large image over a slow line.
const BUCKETS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0,
];

/// A step of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Asking the catalogs and choosing.
    Resolve,
    /// Pulling the bundle's image and reading it.
    Pull,
    /// Rendering it and checking what comes out.
    Render,
    /// Writing the revision.
    Write,
    /// Applying the objects of a revision.
    Apply,
}

impl Step {
    const ALL: [Self; 5] = [Self::Resolve, Self::Pull, Self::Render, Self::Write, Self::Apply];

    fn label(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Pull => "pull",
            Self::Render => "render",
            Self::Write => "write",
            Self::Apply => "apply",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStep {
    step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    reason: &'static str,
}

/// The metrics. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    seconds: Family<OfStep, Histogram, fn() -> Histogram>,
    retries: Family<OfReason, Counter>,
}

impl Metrics {
    /// Shown in `registry`.
    pub(crate) fn new(registry: &Registry) -> Self {
        let metrics = Self {
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            retries: Family::default(),
        };
        registry.register(|inner| {
            inner.register(
                "olm_step_duration_seconds",
                "How long a step of reconciling an extension takes",
                metrics.seconds.clone(),
            );
            inner.register(
                "olm_cluster_extension_retries",
                "Reconciles of ClusterExtensions that are tried again, by what failed",
                metrics.retries.clone(),
            );
        });
        for step in Step::ALL {
            drop(metrics.seconds.get_or_create(&OfStep { step: step.label() }));
        }
        metrics
    }

    /// Runs `work` and notes how long it took.
    pub(crate) async fn measure<T>(&self, step: Step, work: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let done = work.await;
        let label = OfStep { step: step.label() };
        self.seconds
            .get_or_create(&label)
            .observe(start.elapsed().as_secs_f64());
        done
    }

    /// Notes that something is tried again because `reason` failed.
    pub(crate) fn retried(&self, reason: &'static str) {
        self.retries.get_or_create(&OfReason { reason }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn steps_and_retries_are_counted() {
        let registry = Registry::new();
        let metrics = Metrics::new(&registry);
        assert_eq!(metrics.measure(Step::Pull, async { 7 }).await, 7);
        metrics.retried("image");
        let text = registry.encode().unwrap();
        assert!(
            text.contains("olm_step_duration_seconds_count{step=\"pull\"} 1"),
            "{text}"
        );
        assert!(
            text.contains("olm_step_duration_seconds_count{step=\"apply\"} 0"),
            "{text}"
        );
        assert!(
            text.contains("olm_cluster_extension_retries_total{reason=\"image\"} 1"),
            "{text}"
        );
    }
}
