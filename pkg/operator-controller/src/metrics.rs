//! Metrics of reconciles: duration of each step, causes of retries, failing watches. All labels are from closed sets,
//! except the kinds of failing watches.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Instant;

use olm_applier::watch::Watches;
use olm_runtime::metrics::{Description, Registry};
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;

/// Upper bounds of the histogram in seconds: from a resolution in memory to a large image over a slow line.
const BUCKETS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0, 120.0, 600.0,
];

const STEP_SECONDS: Description = Description::histogram(
    "olm_step_duration_seconds",
    &["step"],
    "Duration of a step of a reconcile: `namespaces`, `observe`, `maintain`, `lookup`, `resolve`, `dependencies`, `locate`, `restore`, `target`, \
     `pull`, `render`, `verify`, `admit`, `write`, `adjust`, `apply`",
);
const RETRIES: Description = Description::counter(
    "olm_cluster_extension_retries",
    &["reason"],
    "Retries of ClusterExtensions by cause: `resolution`, `constraints`, `namespace`, `rights`, `image`, `bundle`, `render`, \
     `certificates`, `crd_safety`, `dependents`, `pack`, `rollback`, `rollout`, `api`, `interrupted`",
);
const WATCH_FAILING: Description = Description::gauge(
    "olm_watch_failing",
    &["group", "version", "kind", "reason"],
    "1 for every kind of installed objects whose watch fails",
);
/// Descriptions of the metrics of reconciles.
pub(crate) const DESCRIPTIONS: [Description; 3] = [STEP_SECONDS, RETRIES, WATCH_FAILING];

/// Declares the steps with their label values.
macro_rules! steps {
    ($($(#[$doc:meta])* $variant:ident = $label:literal,)+) => {
        /// A step of a reconcile.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Step { $($(#[$doc])* $variant,)+ }

        impl Step {
            const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the name of the step in metrics and spans.
            pub(crate) fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }
        }
    };
}

steps! {
    /// Listing the namespaces that an extension selects by labels.
    Namespaces = "namespaces",
    /// Reading the revisions of an extension.
    Observe = "observe",
    /// Writing what the revisions need whatever bundle is resolved.
    Maintain = "maintain",
    /// Asking the catalogs for the package.
    Lookup = "lookup",
    /// Resolving the bundle.
    Resolve = "resolve",
    /// Checking the dependencies of the bundle.
    Dependencies = "dependencies",
    /// Finding the digest of the bundle's image.
    Locate = "locate",
    /// Reading the content of a former revision, for a rollback.
    Restore = "restore",
    /// Reading the install namespace and the service account.
    Target = "target",
    /// Pulling and parsing the bundle.
    Pull = "pull",
    /// Rendering the objects.
    Render = "render",
    /// Checking rights and CRDs.
    Verify = "verify",
    /// Comparing a new revision with the newest one and with `spec.rollout`.
    Admit = "admit",
    /// Writing a new revision.
    Write = "write",
    /// Writing the changes of the newest revision.
    Adjust = "adjust",
    /// Applying the objects of a revision.
    Apply = "apply",
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStep {
    step: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    reason: &'static str,
}

/// Failing watches of managed objects, labelled with their kinds.
#[derive(Clone, Debug, Default)]
struct FailingWatches(Arc<Mutex<Weak<Watches>>>);

impl Collector for FailingWatches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let watches = self.0.lock().upgrade();
        let failing = watches.map(|watches| watches.failing(None)).unwrap_or_default();
        let mut family = WATCH_FAILING.encode(&mut encoder)?;
        for ((group, version, kind), fault) in failing {
            let reason = fault.cause.as_str().to_owned();
            let labels = [
                ("group", group),
                ("version", version),
                ("kind", kind),
                ("reason", reason),
            ];
            ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// The metrics. Clones share their values.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    seconds: Family<OfStep, Histogram, fn() -> Histogram>,
    retries: Family<OfReason, Counter>,
    watches: FailingWatches,
}

impl Metrics {
    /// Creates the metrics and registers them.
    pub(crate) fn new(registry: &Registry) -> Self {
        let metrics = Self {
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            retries: Family::default(),
            watches: FailingWatches::default(),
        };
        registry.register(|inner| {
            STEP_SECONDS.register(inner, metrics.seconds.clone());
            RETRIES.register(inner, metrics.retries.clone());
            inner.register_collector(Box::new(metrics.watches.clone()));
        });
        for step in Step::ALL {
            drop(metrics.seconds.get_or_create(&OfStep { step: step.label() }));
        }
        metrics
    }

    /// Exports the failures of `watches` for as long as they exist.
    pub(crate) fn show_watches(&self, watches: &Arc<Watches>) {
        *self.watches.0.lock() = Arc::downgrade(watches);
    }

    /// Runs `work`, measures its duration and logs it at debug level.
    pub(crate) async fn measure<T>(&self, step: Step, work: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let done = work.await;
        let label = OfStep { step: step.label() };
        let seconds = start.elapsed().as_secs_f64();
        self.seconds.get_or_create(&label).observe(seconds);
        tracing::debug!(step = step.label(), seconds, "step done");
        done
    }

    /// Counts a retry by the part that failed.
    pub(crate) fn retried(&self, reason: &'static str) {
        self.retries.get_or_create(&OfReason { reason }).inc();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::Response;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Client;
    use kube::api::ApiResource;
    use kube::client::Body;
    use olm_applier::ownership::Identity;
    use olm_applier::watch::WatchTiming;

    use super::*;

    #[tokio::test]
    async fn a_failing_watch_is_shown_as_long_as_it_is_needed() {
        let refusing = tower::service_fn(|_: http::Request<Body>| async {
            Response::builder().status(403).body(Body::from(b"no".to_vec()))
        });
        let timing = WatchTiming {
            patience: Duration::from_millis(1),
            ..WatchTiming::default()
        };
        let (watches, _triggers) = Watches::new(Client::new(refusing, "default"), timing);
        let watches = Arc::new(watches);
        let registry = Registry::new();
        Metrics::new(&registry).show_watches(&watches);
        let user = Identity {
            name: "a-1".to_owned(),
            uid: "u".to_owned(),
            number: 1,
            owner_name: "a".to_owned(),
            siblings: Vec::new(),
        };
        let kind = (String::new(), "v1".to_owned(), "ConfigMap".to_owned());
        watches.need(&user, &kind, &ApiResource::erase::<ConfigMap>(&()));
        let line = "olm_watch_failing{group=\"\",version=\"v1\",kind=\"ConfigMap\",reason=\"Forbidden\"} 1";
        let shown = async {
            while !registry.encode().unwrap().contains(line) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), shown).await.unwrap();
        watches.release("u");
        assert!(!registry.encode().unwrap().contains("olm_watch_failing{"));
    }

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
        for step in Step::ALL {
            let label = format!("`{}`", step.label());
            assert!(STEP_SECONDS.help.contains(&label), "{label} is not described");
        }
        assert!(
            text.contains("olm_cluster_extension_retries_total{reason=\"image\"} 1"),
            "{text}"
        );
    }
}
