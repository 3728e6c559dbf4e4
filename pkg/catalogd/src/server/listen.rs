//! HTTPS listener of the content API, and its announcement of a shutdown to clients.

use std::net::TcpListener;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Version, header},
    middleware::{self, Next},
    response::Response,
};
use olm_runtime::{
    serve::{self, App, Limits, ServeError},
    tls::ServingCert,
};
use tokio_util::sync::CancellationToken;

use super::metrics::{Metrics, observe};

/// Default of `--catalogs-server-max-connections`. Clients are a few controllers, commands and consoles with few
/// connections each: this is far more, and still little memory.
pub const CONNECTIONS: usize = 1024;
/// Default of `--catalogs-server-max-connections-per-client`, half of all: many clients may share an address behind a
/// proxy or NAT, but one client must not take all connections.
pub const CONNECTIONS_PER_CLIENT: usize = 512;

/// Returns the limits of the content server. HTTP/2 clients request many packages concurrently.
pub fn traffic(connections: usize, per_client: usize) -> Limits {
    Limits {
        http2_streams: 100,
        connections,
        per_client,
        requests: connections.saturating_mul(2),
        ..Limits::DEFAULT
    }
}

/// Returns the application of a router. Requests beyond the limit never reach the router; they count in the same metrics.
pub fn app(router: Router, metrics: Metrics) -> App {
    App::from(router).map_refusal(|refusal| refusal.layer(middleware::from_fn_with_state(metrics, observe)))
}

/// Serves on an open socket until `shutdown`, then finishes the responses in progress.
pub async fn serve(
    listener: TcpListener,
    app: impl Into<App>,
    certificate: &ServingCert,
    traffic: Limits,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    serve::tls_on("catalog content", listener, app, certificate, traffic, shutdown).await
}

/// Adds `Connection: close` to HTTP/1.1 responses from `stopping` on, so that the next request goes to another replica
/// instead of a closing connection. HTTP/2 announces this itself.
pub fn close_connections_on(router: Router, stopping: CancellationToken) -> Router {
    router.layer(middleware::from_fn_with_state(stopping, close_after_response))
}

async fn close_after_response(
    State(stopping): State<CancellationToken>,
    request: Request,
    next: Next,
) -> Response {
    let version = request.version();
    let mut response = next.run(request).await;
    if version <= Version::HTTP_11 && stopping.is_cancelled() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}
