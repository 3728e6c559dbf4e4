//! The `/metrics` endpoint.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, header},
    middleware,
    response::{IntoResponse, Response},
    routing::get,
};
use kube::Client;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{Registry, access, format};
use crate::{
    address::BindAddress,
    serve::{self, ServeError},
    tls::ServingCert,
};

/// Content type of [`Registry::encode`].
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Content type of [`format::from_openmetrics`].
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Registry and permit that all scrapes share.
#[derive(Clone)]
struct ScrapeState {
    registry: Registry,
    /// Permit for one scrape at a time: scrapes need the registry's lock.
    permit: Arc<Semaphore>,
}

impl ScrapeState {
    fn new(registry: Registry) -> Self {
        Self {
            registry,
            permit: Arc::new(Semaphore::new(1)),
        }
    }

    fn routes(self) -> Router {
        Router::new().route("/metrics", get(metrics)).with_state(self)
    }
}

/// Answers a scrape. Collectors read files and walk folders and thus run on a blocking thread.
async fn metrics(State(state): State<ScrapeState>, headers: HeaderMap) -> Response {
    let openmetrics = wants_openmetrics(&headers);
    let permit = state.permit.acquire_owned().await;
    let encoded = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let text = state.registry.encode()?;
        Ok::<_, std::fmt::Error>(if openmetrics {
            text
        } else {
            format::from_openmetrics(&text)
        })
    });
    let kind = if openmetrics { OPENMETRICS } else { PLAIN };
    match encoded.await {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
        Ok(Err(error)) => encoding_failed(&error),
        Err(error) => encoding_failed(&error),
    }
}

fn encoding_failed(error: &dyn std::error::Error) -> Response {
    tracing::error!(%error, "metrics cannot be encoded");
    http::StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

fn wants_openmetrics(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.contains("application/openmetrics-text"))
}

/// Serves `/metrics` over HTTPS until the token is cancelled; returns at once if the address is off. A scraper needs
/// a bearer token whose user may `get` the non-resource URL `/metrics`.
///
/// # Errors
/// The server cannot listen on the address, or it fails.
pub async fn serve(
    address: BindAddress,
    registry: Registry,
    client: Client,
    certificate: &ServingCert,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let Some(listener) = serve::listen("metrics", address)? else {
        return Ok(());
    };
    let allowed = middleware::from_fn_with_state(access::Access::new(client), access::check);
    let router = ScrapeState::new(registry).routes().route_layer(allowed);
    serve::tls_on(
        "metrics",
        listener,
        router,
        certificate,
        serve::Limits::default(),
        shutdown,
    )
    .await
}

#[cfg(test)]
mod tests {
    use std::{fmt, sync::mpsc, time::Duration};

    use axum::body::{Body, to_bytes};
    use parking_lot::Mutex;
    use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
    use prometheus_client::metrics::{MetricType, gauge::ConstGauge};
    use tower::ServiceExt;

    use super::*;

    /// Collector that ends when another task has run.
    #[derive(Debug)]
    struct WaitingCollector(Mutex<mpsc::Receiver<()>>);

    impl prometheus_client::collector::Collector for WaitingCollector {
        fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
            let others = self.0.lock().recv_timeout(Duration::from_secs(10));
            let gauge = ConstGauge::new(u64::from(others.is_ok()));
            gauge.encode(encoder.encode_descriptor("olm_others_work", "Test", None, MetricType::Gauge)?)
        }
    }

    /// The runtime has one thread: a blocking task blocks all others.
    #[tokio::test(flavor = "current_thread")]
    async fn slow_collectors_block_no_other_task() {
        let (works, seen) = mpsc::channel();
        let registry = Registry::new();
        registry.register(|inner| inner.register_collector(Box::new(WaitingCollector(Mutex::new(seen)))));
        let request = http::Request::get("/metrics").body(Body::empty()).unwrap();
        let scrape = tokio::spawn(ScrapeState::new(registry).routes().oneshot(request));
        tokio::time::sleep(Duration::from_millis(50)).await;
        works.send(()).unwrap();
        let response = scrape.await.unwrap().unwrap();
        assert_eq!(response.headers()[header::CONTENT_TYPE], PLAIN);
        let text = to_bytes(response.into_body(), 65_536).await.unwrap();
        let text = String::from_utf8(text.to_vec()).unwrap();
        assert!(text.contains("olm_others_work 1"), "{text}");
    }
}
