//! Metrics of requests: duration, status and response size.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, header},
    middleware::Next,
    response::Response,
};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use olm_runtime::metrics::Description;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

/// Upper bounds in seconds, as upstream's.
const BUCKETS: [f64; 19] = [
    0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.6, 2.0, 2.4, 2.8, 3.2, 3.6, 4.0, 10.0,
];

const DURATION: Description = Description::histogram(
    "catalogd_http_request_duration_seconds",
    &["code"],
    "Duration of requests to the content API, in upstream's buckets",
);
const BYTES: Description = Description::counter(
    "catalogd_http_response_bytes",
    &["encoding"],
    "Bytes of response bodies as sent: `identity`, `gzip`, `zstd`",
);
/// Descriptions of the metrics of requests.
pub(crate) const DESCRIPTIONS: [Description; 2] = [DURATION, BYTES];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BytesLabels {
    encoding: &'static str,
}

type Durations = Family<Labels, Histogram, fn() -> Histogram>;

/// Durations of requests by status code, and response bytes by encoding. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    durations: Durations,
    bytes: Family<BytesLabels, Counter>,
}

impl Metrics {
    /// Registers the histogram under upstream's name, and the counter of bytes.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            durations: Durations::new_with_constructor(|| Histogram::new(BUCKETS)),
            bytes: Family::default(),
        };
        DURATION.register(registry, metrics.durations.clone());
        BYTES.register(registry, metrics.bytes.clone());
        metrics
    }
}

/// Measures and logs a request.
pub(super) async fn observe(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let (method, uri, started) = (request.method().clone(), request.uri().clone(), Instant::now());
    let response = next.run(request).await;
    let (status, took) = (response.status().as_u16(), started.elapsed());
    tracing::debug!(%method, %uri, status, took_ms = took.as_millis(), "served");
    let encoding = encoding(response.headers());
    let sent = metrics.bytes.get_or_create_owned(&BytesLabels { encoding });
    let durations = metrics.durations.get_or_create_owned(&Labels { code: status });
    response.map(|body| {
        Body::new(Counted {
            body,
            sent,
            started,
            durations,
        })
    })
}

/// Returns the encoding from a closed set of label values.
fn encoding(headers: &HeaderMap) -> &'static str {
    match headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None => "identity",
        Some(b"gzip") => "gzip",
        Some(b"zstd") => "zstd",
        Some(_) => "other",
    }
}

/// Body whose bytes count when they are taken: an aborted response counts up to the abort. The duration of the request ends when the
/// body is dropped, after its last byte was taken or at the abort.
struct Counted {
    body: Body,
    sent: Counter,
    started: Instant,
    durations: Histogram,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.durations.observe(self.started.elapsed().as_secs_f64());
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(bytes) = frame.data_ref()
        {
            self.sent.inc_by(bytes.len() as u64);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
