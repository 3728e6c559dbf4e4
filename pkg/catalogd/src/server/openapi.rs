//! `GET /openapi.json`: `OpenAPI` description of the content API.

use axum::{
    http::{HeaderMap, Method},
    response::Response,
};

use super::{conditional::Validators, content::SharedState, document, reply};

/// The document; tests compare it with real responses.
const DOCUMENT: &[u8] = include_bytes!("openapi.json");

/// Responds with the document.
pub(super) fn respond(shared: &SharedState, method: &Method, headers: &HeaderMap) -> Response {
    let digest = format!("openapi-{}", document::digest(DOCUMENT));
    let validators = |encoding| Validators {
        etag: reply::etag(&digest, encoding),
        content: None,
        modified: None,
    };
    document::respond(shared, method, headers, validators, DOCUMENT)
}
