//! Answers without content: short for the client, the cause in the log.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};

/// What [`axum`] handlers give: an answer that is no success.
pub(super) type Refusal = Box<Response>;

/// A line of text with a status, as Go's `http.Error` writes it.
pub(super) fn text(status: StatusCode, line: &str) -> Response {
    let mut response = Response::new(Body::from(format!("{line}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// The route does not exist.
pub(super) fn no_page() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found")
}

/// The catalog has no content here.
pub(super) fn no_catalog() -> Response {
    text(StatusCode::NOT_FOUND, "404 Not Found")
}

/// The query is not understood.
pub(super) fn bad_request() -> Response {
    text(StatusCode::BAD_REQUEST, "400 Bad Request")
}

/// The method is none of GET and HEAD.
pub(super) fn wrong_method() -> Response {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

/// Something broke; the client is not told what.
pub(super) fn broken(what: &'static str, error: &dyn std::error::Error) -> Response {
    let error = olm_runtime::telemetry::chain(error);
    tracing::error!(what, error, "request failed");
    text(StatusCode::INTERNAL_SERVER_ERROR, "500 Internal Server Error")
}

/// A status with headers and nothing else.
pub(super) fn empty(status: StatusCode, headers: HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
