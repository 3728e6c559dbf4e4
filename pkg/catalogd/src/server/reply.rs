//! Responses without content: short for the client, with the cause in the log.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::Response,
};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::{conditional::Validators, encoding};
use crate::storage::{Encoding, Generation};

/// Header with the digest of the catalog's whole content, the same for every selection and encoding: a client can tell
/// whether two responses show the same content.
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("olm-content-digest");

/// Header with the digest of the catalog image, as in `status.resolvedSource`: a client can reject the responses of a
/// replica that is behind the leader.
const IMAGE_DIGEST: HeaderName = HeaderName::from_static("olm-image-digest");

/// Error response of the [`axum`] handlers.
pub(super) type Rejection = Box<Response>;

/// Returns a status with a line of text, like Go's `http.Error`.
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
pub(super) fn route_not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 page not found")
}

/// The catalog has no content here.
pub(super) fn catalog_not_found() -> Response {
    text(StatusCode::NOT_FOUND, "404 Not Found")
}

/// The query is malformed.
pub(super) fn bad_request() -> Response {
    text(StatusCode::BAD_REQUEST, "400 Bad Request")
}

/// The route does not support the method; `allowed` is its `Allow` header.
pub(super) fn method_not_allowed(allowed: &'static str) -> Response {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// The memory for the response is taken; the client should ask again.
pub(super) fn busy() -> Response {
    let mut response = text(StatusCode::SERVICE_UNAVAILABLE, "503 Service Unavailable");
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// Logs an internal error that the client does not see.
pub(super) fn internal_error(what: &'static str, error: &dyn std::error::Error) -> Response {
    let error = olm_text::chain(error);
    tracing::error!(what, error, "request failed");
    text(StatusCode::INTERNAL_SERVER_ERROR, "500 Internal Server Error")
}

/// Returns a status with headers and no body.
pub(super) fn empty(status: StatusCode, headers: HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Returns 304.
pub(super) fn not_modified(validators: &Validators) -> Response {
    empty(StatusCode::NOT_MODIFIED, validator_headers(validators))
}

/// Returns the header with the digest of the image from which `generation` was unpacked.
pub(super) fn image_digest(generation: &Generation) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some((_, digest)) = generation.manifest().origin.resolved.rsplit_once('@') {
        set(&mut headers, IMAGE_DIGEST, digest);
    }
    headers
}

/// Returns the headers for validators.
pub(super) fn validator_headers(validators: &Validators) -> HeaderMap {
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

/// Returns a strong entity tag of a subject in an encoding.
pub(super) fn etag(of: &str, encoding: Encoding) -> String {
    match encoding::token(encoding) {
        Some(token) => format!("\"{of}-{token}\""),
        None => format!("\"{of}\""),
    }
}

/// Returns half of a hash, hexadecimal: collision-resistant among the queries of one content.
pub(super) fn short_hash(hash: Sha256) -> String {
    HEXLOWER.encode(&hash.finalize()[..16])
}

/// Sets a header if its value is valid.
pub(super) fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
