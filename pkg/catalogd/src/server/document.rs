//! Small JSON documents, made whole before they are sent.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{
    compress,
    conditional::{self, Validators, Verdict},
    content::Shared,
    encoding,
    kept::Answer,
    piece, reply,
};
use crate::storage::Encoding;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A value as a line of JSON.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    text
}

/// What stands for a text in its entity tag.
pub(super) fn digest(text: &[u8]) -> String {
    reply::short(Sha256::new_with_prefix(text))
}

/// Answers a GET or HEAD with a document. Its compressed form is kept.
pub(super) fn answer(
    shared: &Shared,
    method: &Method,
    headers: &HeaderMap,
    validators: impl Fn(Encoding) -> Validators,
    text: &[u8],
) -> Response {
    let form = encoding::accepted(headers);
    let validators = validators(form);
    match conditional::evaluate(headers, &validators) {
        Verdict::Proceed => {}
        Verdict::NotModified => return reply::not_modified(&validators),
        Verdict::Failed => {
            return reply::empty(StatusCode::PRECONDITION_FAILED, reply::identified(&validators));
        }
    }
    let answer = match compressed(shared, &validators.etag, form, text) {
        Ok(answer) => answer,
        Err(error) => return reply::broken("compressing a document", &error),
    };
    let mut response = reply::empty(StatusCode::OK, reply::identified(&validators));
    fill(&mut response, answer, *method != Method::HEAD);
    response
}

/// A text in a form, from what was kept under `tag` where that is the case.
fn compressed(shared: &Shared, tag: &str, form: Encoding, text: &[u8]) -> std::io::Result<Answer> {
    if let Some(answer) = shared.kept.get(tag) {
        return Ok(answer);
    }
    let answer = made(form, text)?;
    shared.kept.put(tag, answer.clone());
    Ok(answer)
}

/// A text in a form. A long one takes long to compress: not on a thread of the reactor.
pub(super) fn made(form: Encoding, text: &[u8]) -> std::io::Result<Answer> {
    Ok(match compress::whole(form, text)? {
        None => Answer {
            bytes: piece::made(text.to_vec()),
            form: Encoding::Identity,
        },
        Some(bytes) => Answer {
            bytes: piece::made(bytes),
            form,
        },
    })
}

/// Gives a response a JSON body and the headers that describe it.
pub(super) fn fill(response: &mut Response, answer: Answer, body: bool) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::CONTENT_LENGTH, answer.bytes.len().into());
    if let Some(token) = encoding::token(answer.form) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
    }
    if body {
        *response.body_mut() = Body::from(answer.bytes);
    }
}
