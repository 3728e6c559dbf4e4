//! `--pprof-bind-address`: manifests made for upstream set it, and Go's profiles do not exist here.
//!
//! Rather than to refuse to start, or to leave a tool with a closed port, the address says what there is instead.

use axum::{Router, http::StatusCode, routing::get};
use tokio_util::sync::CancellationToken;

use crate::{
    address::BindAddress,
    serve::{self, ServeError},
};

const INSTEAD: &str = "There are no Go profiles here: take one of the process with `perf record -g -p PID` (symbols are in the \
                       binary), and memory, processor time and descriptors from /metrics.\n";

/// Serves until the token is cancelled; returns at once when the address is off.
///
/// # Errors
/// The address cannot be listened on, or the server broke.
pub async fn serve(address: BindAddress, shutdown: CancellationToken) -> Result<(), ServeError> {
    serve::plain("profiles", address, router(), shutdown).await
}

fn router() -> Router {
    // As in Go, NUL between the arguments.
    let command_line = async || std::env::args().collect::<Vec<_>>().join("\0");
    Router::new()
        .route("/debug/pprof/cmdline", get(command_line))
        .fallback(async || (StatusCode::NOT_IMPLEMENTED, INSTEAD))
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn says_what_there_is_instead() {
        let request = http::Request::get("/debug/pprof/heap")
            .body(Body::empty())
            .unwrap();
        let response = router().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_IMPLEMENTED);
        let body = to_bytes(response.into_body(), 4096).await.unwrap();
        assert!(body.starts_with(b"There are no Go profiles"));
    }
}
