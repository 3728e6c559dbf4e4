//! Application of a server.

use axum::{
    Router,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

/// Router of a server, and its answer to requests beyond [`Limits::requests`](super::Limits::requests).
#[derive(Clone, Debug)]
pub struct App {
    pub(super) router: Router,
    pub(super) refusal: Router,
}

impl App {
    /// Adds layers to the answer to refused requests, such as one that counts requests. The layers of the router do not see
    /// these requests.
    #[must_use]
    pub fn map_refusal(mut self, layered: impl FnOnce(Router) -> Router) -> Self {
        self.refusal = layered(self.refusal);
        self
    }
}

impl From<Router> for App {
    fn from(router: Router) -> Self {
        Self {
            router,
            refusal: Router::new().fallback(async || service_unavailable()),
        }
    }
}

/// Response to a request without a permit.
fn service_unavailable() -> Response {
    let retry = [(header::RETRY_AFTER, HeaderValue::from_static("1"))];
    (
        StatusCode::SERVICE_UNAVAILABLE,
        retry,
        "Too many requests under way\n",
    )
        .into_response()
}
