//! Optional authorization: a request needs a bearer token whose user may `get` the path (`post` for queries) as a
//! non-resource URL.

use axum::{
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::Response,
};
use olm_runtime::metrics::access::{Access, Decision};

use super::reply;

/// Audience of accepted tokens, besides the API server's.
pub const AUDIENCE: &str = "catalogd.olm.operatorframework.io";

/// Passes authorized requests on.
pub(super) async fn check(State(access): State<Access>, request: Request, next: Next) -> Response {
    let verb = match *request.method() {
        Method::GET | Method::HEAD => "get".to_owned(),
        ref other => other.as_str().to_ascii_lowercase(),
    };
    let peer = request.extensions().get().copied();
    let decision = access.authorize(peer, request.headers(), &verb, request.uri().path());
    match decision.await {
        Ok(Decision::Allowed) => next.run(request).await,
        Ok(Decision::Unauthenticated) => {
            let mut response = reply::text(StatusCode::UNAUTHORIZED, "Unauthorized");
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
        Ok(Decision::Forbidden) => reply::text(StatusCode::FORBIDDEN, "Forbidden"),
        Err(error) => match error.refusal() {
            Some((status, after)) => {
                let mut response = reply::text(status, "Too Many Requests");
                let headers = response.headers_mut();
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static(after));
                response
            }
            None => reply::internal_error("reviewing a token", &error),
        },
    }
}
