//! Small JSON documents, produced whole before they are sent.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    cache::EncodedBody,
    chunk, compress,
    conditional::{self, Validators, Verdict},
    content::SharedState,
    encoding, reply,
};
use crate::storage::Encoding;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Serializes a value as a line of JSON.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Returns the digest of a text for its entity tag.
pub(super) fn digest(text: &[u8]) -> String {
    reply::short_hash(Sha256::new_with_prefix(text))
}

/// Responds to GET or HEAD with a document. Its compressed form is cached.
pub(super) fn respond(
    shared: &SharedState,
    method: &Method,
    headers: &HeaderMap,
    validators: impl Fn(Encoding) -> Validators,
    text: &[u8],
) -> Response {
    let encoding = encoding::accepted(headers);
    let validators = validators(encoding);
    match conditional::evaluate(headers, &validators) {
        Verdict::Proceed => {}
        Verdict::NotModified => return reply::not_modified(&validators),
        Verdict::Failed => {
            return reply::empty(
                StatusCode::PRECONDITION_FAILED,
                reply::validator_headers(&validators),
            );
        }
    }
    let body = match encode_cached(shared, &validators.etag, encoding, text) {
        Ok(body) => body,
        Err(error) => return reply::internal_error("compressing a document", &error),
    };
    let mut response = reply::empty(StatusCode::OK, reply::validator_headers(&validators));
    set_json_body(&mut response, body, *method != Method::HEAD);
    response
}

/// Compresses a text, unless the cache has the result under `tag`.
fn encode_cached(
    shared: &SharedState,
    tag: &str,
    encoding: Encoding,
    text: &[u8],
) -> std::io::Result<EncodedBody> {
    if let Some(body) = shared.cache.get(tag) {
        return Ok(body);
    }
    let body = encode(encoding, text)?;
    shared.cache.put(tag, body.clone());
    Ok(body)
}

/// Compresses a text.
fn encode(encoding: Encoding, text: &[u8]) -> std::io::Result<EncodedBody> {
    Ok(match compress::compress_all(encoding, text)? {
        None => EncodedBody {
            bytes: chunk::buffered(text.to_vec()),
            encoding: Encoding::Identity,
        },
        Some(bytes) => EncodedBody {
            bytes: chunk::buffered(bytes),
            encoding,
        },
    })
}

/// Gives a response a JSON body and the headers that describe it.
pub(super) fn set_json_body(response: &mut Response, body: EncodedBody, with_body: bool) {
    set_json_headers(response, body.bytes.len(), body.encoding);
    if with_body {
        *response.body_mut() = Body::from(body.bytes);
    }
}

/// Gives a response the headers that describe a JSON body of `size` bytes.
pub(super) fn set_json_headers(response: &mut Response, size: usize, encoding: Encoding) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::CONTENT_LENGTH, size.into());
    if let Some(token) = encoding::token(encoding) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
    }
}
