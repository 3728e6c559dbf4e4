//! The process's metrics, in the Prometheus text format, over HTTPS for who may read them.

#[cfg(feature = "server")]
pub mod access;
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

#[cfg(feature = "server")]
pub use endpoint::serve;
pub use reconcile::{Controller, Ended, Reconciles};
pub use requests::{Counted, Requests};

/// All metrics of a process. Clones share it.
#[derive(Clone)]
pub struct Registry(Arc<Mutex<registry::Registry>>);

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// With the figures of the process and the build's version.
    #[must_use]
    pub fn new() -> Self {
        let mut inner = registry::Registry::default();
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        inner.register(
            "process_start_time_seconds",
            "Start time of the process since the Unix epoch in seconds",
            ConstGauge::new(started.as_secs_f64()),
        );
        inner.register(
            "olm_build",
            "Always 1, with version and commit as its labels",
            prometheus_client::metrics::info::Info::new(vec![
                ("version", crate::build_info::VERSION),
                ("commit", crate::build_info::COMMIT),
            ]),
        );
        inner.register_collector(Box::new(process::Process));
        Self(Arc::new(Mutex::new(inner)))
    }

    /// Registers metrics. Labels must come from closed sets: no object names, no error texts.
    pub fn register<T>(&self, with: impl FnOnce(&mut registry::Registry) -> T) -> T {
        with(&mut self.0.lock())
    }

    /// The text of all metrics.
    ///
    /// # Errors
    /// A metric cannot be written as text.
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
    fn text_has_what_was_registered() {
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
