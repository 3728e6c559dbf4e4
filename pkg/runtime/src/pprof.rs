//! `--pprof-bind-address`, which manifests made for upstream set.
//!
//! Go profiles do not exist here. The endpoint answers with the alternatives, rather than failing the start or
//! leaving the port closed.

use axum::{Router, http::StatusCode, routing::get};
use tokio_util::sync::CancellationToken;

use crate::{
    address::BindAddress,
    serve::{self, ServeError},
};

const ALTERNATIVES: &str = "There are no Go profiles here: take one of the process with `perf record -g -p PID` (symbols are in the \
                       binary), and memory, processor time and descriptors from /metrics.\n";

/// Serves until the token is cancelled; returns at once if the address is off.
///
/// # Errors
/// The server cannot listen on the address, or it fails.
pub async fn serve(address: BindAddress, shutdown: CancellationToken) -> Result<(), ServeError> {
    serve::plain("profiles", address, router(), shutdown).await
}

fn router() -> Router {
    // NUL separates the arguments, as in Go.
    let command_line = async || std::env::args().collect::<Vec<_>>().join("\0");
    Router::new()
        .route("/debug/pprof/cmdline", get(command_line))
        .fallback(async || (StatusCode::NOT_IMPLEMENTED, ALTERNATIVES))
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn names_the_alternatives() {
        let request = http::Request::get("/debug/pprof/heap")
            .body(Body::empty())
            .unwrap();
        let response = router().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
        let body = to_bytes(response.into_body(), 4096).await.unwrap();
        assert!(body.starts_with(b"There are no Go profiles"));
    }
}
