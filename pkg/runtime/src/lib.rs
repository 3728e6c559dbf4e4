//! Common runtime of both controllers: telemetry, metrics, health, TLS, leases, backoff, events, shutdown.
//!
//! The crate does not depend on catalogs or extensions. Every long-running task takes a
//! [`tokio_util::sync::CancellationToken`] and ends when it is cancelled; every call out of the process has a
//! timeout.

pub mod address;
pub mod args;
pub mod backoff;
pub mod build_info;
pub mod client;
pub mod clock;
pub mod connect;
pub mod events;
pub mod features;
pub mod guard;
#[cfg(feature = "server")]
pub mod health;
pub mod lease;
pub mod locks;
#[cfg(feature = "jemalloc")]
pub mod memory;
pub mod metrics;
pub mod parsing;
#[cfg(feature = "server")]
pub mod pprof;
#[cfg(feature = "server")]
pub mod serve;
pub mod shutdown;
pub mod superseded;
pub mod telemetry;
pub mod tls;
pub mod workers;

pub use args::CommonArgs;
pub use client::{client, measured_client};
pub use features::{Binary, Feature, FeatureGates};

/// Returns the descriptions of the metrics of both controllers.
pub fn metric_descriptions() -> impl Iterator<Item = metrics::Description> {
    metrics::descriptions().chain([lease::MASTER_STATUS])
}
