//! Metrics of the process in the Prometheus text format, over HTTPS with authorization.

#[cfg(feature = "server")]
pub mod access;
mod description;
#[cfg(feature = "server")]
mod endpoint;
#[cfg(feature = "server")]
mod format;
mod process;
mod reconcile;
mod requests;

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use prometheus_client::{encoding::text, metrics::gauge::ConstGauge, registry};

pub use description::Description;
#[cfg(feature = "server")]
pub use endpoint::serve;
pub use reconcile::{ControllerMetrics, ReconcileMetrics, ReconcileResult};
pub use requests::{CountingService, RequestMetrics};

/// Returns the descriptions of this module's metrics.
pub(crate) fn descriptions() -> impl Iterator<Item = Description> {
    [BUILD, START_TIME]
        .into_iter()
        .chain(process::DESCRIPTIONS)
        .chain(reconcile::DESCRIPTIONS)
        .chain([requests::TOTAL])
}

const START_TIME: Description = Description::gauge(
    "process_start_time_seconds",
    &[],
    "Start time of the process since the Unix epoch in seconds",
);
const BUILD: Description = Description::info(
    "olm_build",
    &["version", "commit"],
    "Always 1, with version and commit as its labels",
);

/// Metrics of a process. Clones share the registry.
#[derive(Clone)]
pub struct Registry(Arc<Mutex<registry::Registry>>);

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// Returns a registry with the metrics of the process and the build.
    #[must_use]
    pub fn new() -> Self {
        let mut inner = registry::Registry::default();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        START_TIME.register(&mut inner, ConstGauge::new(started.as_secs_f64()));
        BUILD.register(
            &mut inner,
            prometheus_client::metrics::info::Info::new(vec![
                ("version", crate::build_info::VERSION),
                ("commit", crate::build_info::COMMIT),
            ]),
        );
        inner.register_collector(Box::new(process::ProcessCollector));
        Self(Arc::new(Mutex::new(inner)))
    }

    /// Registers metrics. Label values must come from closed sets: no object names, no error texts.
    pub fn register<T>(&self, register: impl FnOnce(&mut registry::Registry) -> T) -> T {
        register(&mut self.0.lock())
    }

    /// Returns all metrics as text.
    ///
    /// # Errors
    /// A metric cannot be encoded.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.0.lock())?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registered_metrics_are_encoded() {
        let registry = Registry::new();
        let counter = prometheus_client::metrics::counter::Counter::<u64>::default();
        registry.register(|inner| inner.register("olm_tests", "Tests", counter.clone()));
        counter.inc();
        let text = registry.encode().unwrap();
        assert!(text.contains("olm_tests_total 1"), "{text}");
        for name in [
            "process_start_time_seconds",
            "process_resident_memory_bytes",
            "process_open_fds",
            "process_max_fds",
            "process_cpu_seconds_total",
            "olm_build_info",
        ] {
            assert!(text.contains(&format!("\n{name}")), "{name} not in\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
