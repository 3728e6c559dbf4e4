//! Answers with content.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    body::Making,
    compress::{Compressor, WORTHWHILE},
    conditional::{self, Validators, Verdict},
    encoding,
    kept::{self, Answer, Kept},
    piece::{self, PIECE},
    query::Query,
    range::{self, Range},
    read::{Raw, ReadError, Source},
    reply,
};
use crate::storage::{Encoding, Generation};

const JSON_LINES: HeaderValue = HeaderValue::from_static("application/jsonl");
/// Answers compressed at once while they are made; beyond it they are sent as they are. A compressor holds about
/// a megabyte for as long as its client takes.
const COMPRESSING: usize = 16;

/// Objects that are looked at, and bytes that are read, on the thread that answers. So many cost tens of microseconds,
/// as two changes of threads do, and hold up no other answer.
const AT_ONCE: (u32, usize) = (16, 64 * 1024);

/// What answers share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) kept: Kept,
    compressing: Arc<Semaphore>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            kept: Kept::default(),
            compressing: Arc::new(Semaphore::new(COMPRESSING)),
        }
    }
}

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
        Verdict::NotModified => return reply::not_modified(&validators),
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
        Range::Whole => whole(generation, form, method, out),
        Range::Part { start, length } => {
            reply::set(
                &mut out,
                header::CONTENT_RANGE,
                &format!("bytes {start}-{}/{size}", start + length - 1),
            );
            sized(StatusCode::PARTIAL_CONTENT, out, method, length, || {
                stream(Raw::range(generation, form, start, length))
            })
        }
        Range::Unsatisfiable => {
            let mut response = reply::text(
                StatusCode::RANGE_NOT_SATISFIABLE,
                "invalid range: failed to overlap",
            );
            reply::set(
                response.headers_mut(),
                header::CONTENT_RANGE,
                &format!("bytes */{size}"),
            );
            response
        }
    }
}

/// Answers `/metas`. Without a filter and whole objects this is the whole content.
pub(super) async fn metas(
    shared: &Shared,
    generation: Arc<Generation>,
    method: &Method,
    headers: &HeaderMap,
    query: Query,
) -> Response {
    let mut form = encoding::accepted(headers);
    let is_whole = query == Query::default();
    let mut validators = validators(&generation, form, (!is_whole).then_some(&query));
    match conditional::evaluate(headers, &validators) {
        Verdict::Proceed => {}
        Verdict::NotModified => return reply::not_modified(&validators),
        Verdict::Failed => return failed(&validators, false),
    }
    if is_whole {
        let out = described(&validators, form);
        return whole(generation, form, method, out);
    }
    let kept = format!("{} {}", generation.key(), validators.etag);
    if let Some(answer) = shared.kept.get(&kept) {
        return complete(&validators, method, answer);
    }
    if *method == Method::HEAD {
        return head(generation, &validators, form, query).await;
    }
    if form == Encoding::Identity
        && let Some(answer) = at_once(&generation, &query)
    {
        shared.kept.put(&kept, answer.clone());
        return complete(&validators, method, answer);
    }
    let permit = match form {
        Encoding::Identity => None,
        _ => shared.compressing.clone().try_acquire_owned().ok(),
    };
    if permit.is_none() && form != Encoding::Identity {
        form = Encoding::Identity;
        validators = self::validators(&generation, form, Some(&query));
    }
    let key = generation.key();
    match tokio::task::spawn_blocking(move || start(&generation, query, form, permit)).await {
        Ok(Ok(Started::Complete(answer))) => {
            // In the form that it has.
            let kept = format!("{key} {}", validators.etag);
            shared.kept.put(&kept, answer.clone());
            complete(&validators, method, answer)
        }
        Ok(Ok(Started::Partial { first, rest, length })) => {
            let mut out = described(&validators, form);
            if let Some(length) = length {
                out.insert(header::CONTENT_LENGTH, length.into());
            }
            let mut response = reply::empty(StatusCode::OK, out);
            *response.body_mut() = rest.stream(first);
            response
        }
        Ok(Err(error)) => reply::broken("searching the content", &error),
        Err(error) => reply::broken("searching the content", &error),
    }
}

/// All of a small answer that needs no wait for the disk: what was read or written lately is in the page cache.
/// `None` when it is not small, or not there; then a thread that may block looks for it.
fn at_once(generation: &Arc<Generation>, query: &Query) -> Option<Answer> {
    let (objects, room) = AT_ONCE;
    if query.projection.is_some() || query.filter.is_empty() || piece::whole(room) < room {
        return None;
    }
    let mut bytes = Vec::new();
    if let Some(selection) = generation.select_cached(&query.filter).ok()? {
        if selection.left() > objects {
            return None;
        }
        let mut raw = Raw::selected(generation.clone(), selection);
        if raw.read(&mut bytes, room).ok()? {
            return None;
        }
    }
    Some(Answer {
        bytes: piece::made(bytes),
        form: Encoding::Identity,
    })
}

/// An answer as far as it was made at once.
enum Started {
    /// All of it.
    Complete(Answer),
    /// Its beginning, what makes the rest, and its whole length where that is known.
    Partial {
        first: Bytes,
        rest: Box<Making>,
        length: Option<u64>,
    },
}

/// Searches, and makes all of a small answer in one go: every change of threads costs more than reading it.
fn start(
    generation: &Arc<Generation>,
    query: Query,
    form: Encoding,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Started, ReadError> {
    let complete = |bytes: Vec<u8>, form| {
        Ok(Started::Complete(Answer {
            bytes: piece::made(bytes),
            form,
        }))
    };
    let mut raw = if query.filter.is_empty() {
        Raw::whole(generation.clone())
    } else {
        match generation.select(&query.filter)? {
            None => return complete(Vec::new(), Encoding::Identity),
            Some(selection) => Raw::selected(generation.clone(), selection),
        }
    };
    let length = if query.projection.is_none() && form == Encoding::Identity {
        Some(raw.length()?)
    } else {
        None
    };
    // What is too large to be kept is sent as it is read.
    let known = length.and_then(|length| usize::try_from(length).ok());
    let enough = match known {
        Some(length) if length > kept::most(form) => PIECE,
        _ => piece::whole(kept::most(form)),
    };
    let mut making = Making::plain(Source::new(raw, query.projection));
    let mut first = Vec::with_capacity(known.map_or(0, |length| length.min(enough)));
    if let Some(permit) = permit {
        // One more byte than is too little tells whether there are more.
        if !making.fill(&mut first, WORTHWHILE)? && first.len() < WORTHWHILE {
            return complete(first, Encoding::Identity);
        }
        if let Some(mut compressor) = Compressor::new(form).map_err(ReadError::Compress)? {
            compressor.write(&first).map_err(ReadError::Compress)?;
            first.clear();
            making.compressor = Some((compressor, permit));
        }
    }
    if !making.fill(&mut first, enough)? {
        return complete(first, form);
    }
    Ok(Started::Partial {
        first: piece::made(first),
        rest: Box::new(making),
        length,
    })
}

/// The headers of an answer that is not made. Its length is only told where that costs no more than a search.
async fn head(
    generation: Arc<Generation>,
    validators: &Validators,
    form: Encoding,
    query: Query,
) -> Response {
    let mut out = described(validators, form);
    if form == Encoding::Identity && query.projection.is_none() {
        let search = tokio::task::spawn_blocking(move || match generation.select(&query.filter)? {
            Some(selection) => generation.length_of(&selection),
            None => Ok(0),
        });
        match search.await {
            Ok(Ok(length)) => {
                out.insert(header::CONTENT_LENGTH, length.into());
            }
            Ok(Err(error)) => return reply::broken("searching the content", &error),
            Err(error) => return reply::broken("searching the content", &error),
        }
    }
    reply::empty(StatusCode::OK, out)
}

/// The tag is of the content, the form and the query: same tag, same bytes.
fn validators(generation: &Generation, form: Encoding, query: Option<&Query>) -> Validators {
    let manifest = generation.manifest();
    let mut tag = manifest.digest.clone();
    if let Some(query) = query {
        let mut hash = Sha256::new();
        for part in [&query.filter.schema, &query.filter.package, &query.filter.name] {
            let text = part.as_deref().unwrap_or_default();
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        if let Some(projection) = &query.projection {
            hash.update(serde_json::to_vec(projection).unwrap_or_default());
        }
        tag.push('-');
        tag.push_str(&reply::short(hash));
    }
    Validators {
        etag: reply::tag(&tag, form),
        content: Some(manifest.digest.clone()),
        modified: Some(conditional::time(manifest.stored_at)),
    }
}

fn described(validators: &Validators, form: Encoding) -> HeaderMap {
    let mut headers = reply::identified(validators);
    headers.insert(header::CONTENT_TYPE, JSON_LINES);
    if let Some(token) = encoding::token(form) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
    }
    headers
}

fn failed(validators: &Validators, typed: bool) -> Response {
    let mut headers = reply::identified(validators);
    if typed {
        headers.insert(header::CONTENT_TYPE, JSON_LINES);
    }
    reply::empty(StatusCode::PRECONDITION_FAILED, headers)
}

/// A whole catalog in one of its stored forms.
fn whole(generation: Arc<Generation>, form: Encoding, method: &Method, headers: HeaderMap) -> Response {
    let size = generation.size(form);
    sized(StatusCode::OK, headers, method, size, || {
        stream(Raw::range(generation, form, 0, size))
    })
}

fn complete(validators: &Validators, method: &Method, answer: Answer) -> Response {
    let headers = described(validators, answer.form);
    let length = answer.bytes.len() as u64;
    sized(StatusCode::OK, headers, method, length, || {
        Body::from(answer.bytes)
    })
}

fn stream(raw: Raw) -> Body {
    Making::plain(Source::new(raw, None)).stream(Bytes::new())
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
