//! The HTTPS listener of the content API, and how its clients are told that it is about to go.

use std::net::TcpListener;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Version, header},
    middleware::{self, Next},
    response::Response,
};
use olm_runtime::{
    serve::{self, ServeError, Traffic},
    tls::ServingCert,
};
use tokio_util::sync::CancellationToken;

/// Default of `--catalogs-server-max-connections`. Clients are a few controllers, commands and consoles, each with few
/// connections: this is far more, and still little memory.
pub const CONNECTIONS: usize = 1024;
/// Default of `--catalogs-server-max-connections-per-client`. Half: many clients may have one address, behind a proxy or
/// a NAT, and a single one must not take all places.
pub const CONNECTIONS_PER_CLIENT: usize = 512;

/// The limits of the content server. HTTP/2 clients ask for many packages at once.
pub fn traffic(connections: usize, per_client: usize) -> Traffic {
    Traffic {
        streams: 100,
        connections,
        per_client,
        answers: connections.saturating_mul(2),
        ..Traffic::DEFAULT
    }
}

/// Serves on an open socket until `shutdown`, then lets answers under way finish.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(
    listener: TcpListener,
    router: Router,
    certificate: &ServingCert,
    traffic: Traffic,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    serve::tls_on(
        "catalog content",
        listener,
        router,
        certificate,
        traffic,
        shutdown,
    )
    .await
}

/// The same routes; from `stopping` on, every answer over HTTP/1.1 is the last one on its connection, so that the
/// next request goes to another replica instead of into a connection that is being closed. HTTP/2 says so itself.
pub fn leaving(router: Router, stopping: CancellationToken) -> Router {
    router.layer(middleware::from_fn_with_state(stopping, last))
}

async fn last(State(stopping): State<CancellationToken>, request: Request, next: Next) -> Response {
    let version = request.version();
    let mut response = next.run(request).await;
    if version <= Version::HTTP_11 && stopping.is_cancelled() {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(header::CONNECTION, close);
    }
    response
}
