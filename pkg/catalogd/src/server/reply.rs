//! Answers without content: short for the client, the cause in the log.

use std::fmt::Write as _;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use sha2::{Digest, Sha256};

use super::{conditional::Validators, encoding};
use crate::storage::{Encoding, Generation};

/// Says which content of the catalog an answer is of, the same for every selection and form: a client that asks
/// twice can tell whether it saw one content.
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("olm-content-digest");

/// Digest of the catalog image that an answer is of, as `status.resolvedSource` names it: a client refuses what a replica
/// behind the leader serves.
const IMAGE_DIGEST: HeaderName = HeaderName::from_static("olm-image-digest");

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

/// The method is none of those that the route has, listed as in `Allow`.
pub(super) fn wrong_method(allowed: &'static str) -> Response {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(allowed));
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

/// What the client has is still so.
pub(super) fn not_modified(validators: &Validators) -> Response {
    empty(StatusCode::NOT_MODIFIED, identified(validators))
}

/// The digest of the image that `generation` was unpacked from, as a header.
pub(super) fn image_digest(generation: &Generation) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some((_, digest)) = generation.manifest().origin.resolved.rsplit_once('@') {
        set(&mut headers, IMAGE_DIGEST, digest);
    }
    headers
}

/// The headers that tell one answer from another.
pub(super) fn identified(validators: &Validators) -> HeaderMap {
    let mut headers = HeaderMap::new();
    set(&mut headers, header::ETAG, &validators.etag);
    if let Some(content) = &validators.content {
        set(&mut headers, CONTENT_DIGEST, content);
    }
    if let Some(modified) = validators.modified {
        set(
            &mut headers,
            header::LAST_MODIFIED,
            &httpdate::fmt_http_date(modified),
        );
    }
    headers
}

/// A strong entity tag: what it is of, and in which form.
pub(super) fn tag(of: &str, form: Encoding) -> String {
    match encoding::token(form) {
        Some(token) => format!("\"{of}-{token}\""),
        None => format!("\"{of}\""),
    }
}

/// Half of a hash, hexadecimal: enough to tell the queries of one content apart, whoever chose them.
pub(super) fn short(hash: Sha256) -> String {
    hash.finalize()
        .iter()
        .take(16)
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Sets a header, unless its value cannot stand in one.
pub(super) fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
