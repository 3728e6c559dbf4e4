//! `GET /openapi.json`: what the content API is, for machines.

use axum::{
    http::{HeaderMap, Method},
    response::Response,
};

use super::{conditional::Validators, content::Shared, document, reply};

/// The document; tests hold the real answers against it.
const DOCUMENT: &[u8] = include_bytes!("openapi.json");

/// Answers with the document.
pub(super) fn answer(shared: &Shared, method: &Method, headers: &HeaderMap) -> Response {
    let digest = format!("openapi-{}", document::digest(DOCUMENT));
    let validators = |form| Validators {
        etag: reply::tag(&digest, form),
        content: None,
        modified: None,
    };
    document::answer(shared, method, headers, validators, DOCUMENT)
}
