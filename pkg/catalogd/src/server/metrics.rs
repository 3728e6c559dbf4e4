//! How long requests take, and how they end.

use std::time::{Duration, Instant};

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, histogram::Histogram},
    registry::Registry,
};

/// Upper bounds in seconds, upstream's.
const BUCKETS: [f64; 19] = [
    0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.6, 2.0, 2.4, 2.8, 3.2, 3.6, 4.0, 10.0,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    code: u16,
}

type Durations = Family<Labels, Histogram, fn() -> Histogram>;

/// Durations of all requests by status code. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics(Durations);

impl Metrics {
    /// Registers the histogram under upstream's name.
    pub fn register(registry: &mut Registry) -> Self {
        let durations = Durations::new_with_constructor(|| Histogram::new(BUCKETS));
        registry.register(
            "catalogd_http_request_duration_seconds",
            "Histogram of request duration in seconds",
            durations.clone(),
        );
        Self(durations)
    }
}

/// Counts and logs a request.
pub(super) async fn observe(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let (method, uri, started) = (request.method().clone(), request.uri().clone(), Instant::now());
    let response = next.run(request).await;
    let (status, took): (u16, Duration) = (response.status().as_u16(), started.elapsed());
    metrics
        .0
        .get_or_create(&Labels { code: status })
        .observe(took.as_secs_f64());
    tracing::info!(%method, %uri, status, took_ms = took.as_millis(), "served");
    response
}
