//! Answers with content.

use std::{fmt::Write as _, sync::Arc};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use sha2::{Digest, Sha256};

use super::{
    body,
    conditional::{self, Validators, Verdict},
    encoding,
    range::{self, Range},
    reply,
};
use crate::storage::{Encoding, Filter, Generation, Selection};

/// Says which content of the catalog an answer is of, the same for every selection and form: a client that asks
/// twice can tell whether it saw one content.
const CONTENT_DIGEST: header::HeaderName = header::HeaderName::from_static("olm-content-digest");
const JSON_LINES: HeaderValue = HeaderValue::from_static("application/jsonl");

/// Answers `/all`.
pub(super) fn all(generation: Arc<Generation>, method: &Method, headers: &HeaderMap) -> Response {
    let wants_range = headers.contains_key(header::RANGE);
    // Ranges are of the content as it is: a client that resumes need not know our compressor.
    let form = if wants_range {
        Encoding::Identity
    } else {
        encoding::accepted(headers)
    };
    let validators = validators(&generation, form, None);
    match conditional::evaluate(headers, &validators) {
        Verdict::Proceed => {}
        Verdict::NotModified => return not_modified(&validators),
        Verdict::Failed => return failed(&validators, true),
    }
    let size = generation.size(form);
    let mut out = described(&validators, form);
    out.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let range = if wants_range && conditional::range_applies(headers, &validators) {
        range::requested(headers, size)
    } else {
        Range::Whole
    };
    match range {
        Range::Whole => sized(StatusCode::OK, out, method, size, || {
            body::range(generation, form, 0, size)
        }),
        Range::Part { start, length } => {
            set(
                &mut out,
                header::CONTENT_RANGE,
                &format!("bytes {start}-{}/{size}", start + length - 1),
            );
            sized(StatusCode::PARTIAL_CONTENT, out, method, length, || {
                body::range(generation, form, start, length)
            })
        }
        Range::Unsatisfiable => {
            let mut response = reply::text(
                StatusCode::RANGE_NOT_SATISFIABLE,
                "invalid range: failed to overlap",
            );
            set(
                response.headers_mut(),
                header::CONTENT_RANGE,
                &format!("bytes */{size}"),
            );
            response
        }
    }
}

/// Answers `/metas`. Without a filter this is the whole content.
pub(super) async fn metas(
    generation: Arc<Generation>,
    method: &Method,
    headers: &HeaderMap,
    filter: Filter,
) -> Response {
    let whole = filter.is_empty();
    let form = if whole {
        encoding::accepted(headers)
    } else {
        Encoding::Identity
    };
    let validators = validators(&generation, form, (!whole).then_some(&filter));
    match conditional::evaluate(headers, &validators) {
        Verdict::Proceed => {}
        Verdict::NotModified => return not_modified(&validators),
        Verdict::Failed => return failed(&validators, false),
    }
    let out = described(&validators, form);
    if whole {
        let size = generation.size(form);
        return sized(StatusCode::OK, out, method, size, || {
            body::range(generation, form, 0, size)
        });
    }
    let searched = generation.clone();
    let search = tokio::task::spawn_blocking(move || {
        let Some(selection) = searched.select(&filter)? else {
            return Ok(None);
        };
        let length = searched.length_of(&selection)?;
        Ok::<Option<(Selection, u64)>, crate::storage::StorageError>(Some((selection, length)))
    });
    match search.await {
        Ok(Ok(Some((selection, length)))) => sized(StatusCode::OK, out, method, length, || {
            body::selected(generation, selection)
        }),
        Ok(Ok(None)) => sized(StatusCode::OK, out, method, 0, Body::empty),
        Ok(Err(error)) => reply::broken("searching the content", &error),
        Err(error) => reply::broken("searching the content", &error),
    }
}

/// The tag is of the content, the form and the filter: same tag, same bytes.
fn validators(generation: &Generation, form: Encoding, filter: Option<&Filter>) -> Validators {
    let manifest = generation.manifest();
    let mut etag = format!("\"{}", manifest.digest);
    if let Some(filter) = filter {
        let mut hash = Sha256::new();
        for part in [&filter.schema, &filter.package, &filter.name] {
            let text = part.as_deref().unwrap_or_default();
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        etag.push('-');
        for byte in hash.finalize().iter().take(8) {
            let _ = write!(etag, "{byte:02x}");
        }
    }
    if let Some(token) = encoding::token(form) {
        etag.push('-');
        etag.push_str(token);
    }
    etag.push('"');
    Validators {
        etag,
        content: manifest.digest.clone(),
        modified: conditional::time(manifest.stored_at),
    }
}

fn identified(validators: &Validators) -> HeaderMap {
    let mut headers = HeaderMap::new();
    set(&mut headers, header::ETAG, &validators.etag);
    set(&mut headers, CONTENT_DIGEST, &validators.content);
    set(
        &mut headers,
        header::LAST_MODIFIED,
        &httpdate::fmt_http_date(validators.modified),
    );
    headers
}

fn described(validators: &Validators, form: Encoding) -> HeaderMap {
    let mut headers = identified(validators);
    headers.insert(header::CONTENT_TYPE, JSON_LINES);
    if let Some(token) = encoding::token(form) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
    }
    headers
}

fn not_modified(validators: &Validators) -> Response {
    reply::empty(StatusCode::NOT_MODIFIED, identified(validators))
}

fn failed(validators: &Validators, typed: bool) -> Response {
    let mut headers = identified(validators);
    if typed {
        headers.insert(header::CONTENT_TYPE, JSON_LINES);
    }
    reply::empty(StatusCode::PRECONDITION_FAILED, headers)
}

fn sized(
    status: StatusCode,
    mut headers: HeaderMap,
    method: &Method,
    length: u64,
    body: impl FnOnce() -> Body,
) -> Response {
    headers.insert(header::CONTENT_LENGTH, length.into());
    let mut response = reply::empty(status, headers);
    if *method != Method::HEAD {
        *response.body_mut() = body();
    }
    response
}

fn set(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
