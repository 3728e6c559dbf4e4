//! The HTTPS listener of the content API, and how its clients are told that it is about to go.

use std::{net::TcpListener, time::Duration};

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

/// Clients keep connections between two catalogs, and HTTP/2 ones ask for many packages at once.
const TRAFFIC: Traffic = Traffic {
    head: Duration::from_secs(30),
    streams: 100,
};

/// Serves on an open socket until `shutdown`, then lets answers under way finish.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(
    listener: TcpListener,
    router: Router,
    certificate: &ServingCert,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    serve::tls_on(
        "catalog content",
        listener,
        router,
        certificate,
        TRAFFIC,
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
