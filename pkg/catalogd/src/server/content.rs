//! Responses with catalog content.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    body::StreamingBody,
    cache::{self, EncodedBody, ResponseCache},
    chunk::{self, CHUNK},
    compress::{Compressor, MIN_SIZE},
    conditional::{self, Validators, Verdict},
    encoding,
    jobs::{Abandoned, Jobs},
    large::{self, LargeObjects, Reservation},
    query::Query,
    range::{self, Range},
    read::{ContentReader, ReadError, Source},
    reply,
};
use crate::storage::{Encoding, Generation};

const JSON_LINES: HeaderValue = HeaderValue::from_static("application/jsonl");
/// Maximum number of responses compressed concurrently; further ones are sent uncompressed. A compressor holds about a
/// megabyte until its client has read the response.
const MAX_COMPRESSORS: usize = 16;

/// Maximum number of jobs that project objects. Each holds a whole object, of up to 16 MiB.
const MAX_PROJECTIONS: usize = 8;

/// Maximum number of objects searched, and of bytes read, on the reactor's thread. They cost tens of microseconds, like
/// two thread switches, and delay no other response.
const INLINE_LIMITS: (u32, usize) = (16, 64 * 1024);

/// State shared by all responses.
#[derive(Debug)]
pub(super) struct SharedState {
    pub(super) cache: ResponseCache,
    pub(super) jobs: Jobs,
    /// Jobs that project objects.
    projections: Jobs,
    large: LargeObjects,
    compressors: Arc<Semaphore>,
}

impl Default for SharedState {
    fn default() -> Self {
        Self {
            cache: ResponseCache::default(),
            jobs: Jobs::default(),
            projections: Jobs::limited(MAX_PROJECTIONS),
            large: LargeObjects::default(),
            compressors: Arc::new(Semaphore::new(MAX_COMPRESSORS)),
        }
    }
}

/// Responds to `/all`.
pub(super) fn all(
    shared: &SharedState,
    generation: Arc<Generation>,
    method: &Method,
    headers: &HeaderMap,
) -> Response {
    // RFC 9110 section 14.2: only GET has ranges.
    let wants_range = *method == Method::GET && headers.contains_key(header::RANGE);
    // Ranges address the uncompressed content: a client that resumes need not know our compressor.
    let encoding = if wants_range {
        Encoding::Identity
    } else {
        encoding::accepted(headers)
    };
    let validators = validators(&generation, encoding, None);
    match conditional::evaluate(headers, &validators) {
        Verdict::Proceed => {}
        Verdict::NotModified => return reply::not_modified(&validators),
        Verdict::Failed => return precondition_failed(&validators, true),
    }
    let size = generation.size(encoding);
    let mut out = response_headers(&validators, encoding);
    out.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let range = if wants_range && conditional::range_applies(headers, &validators) {
        range::parse(headers, size)
    } else {
        Range::Whole
    };
    match range {
        Range::Whole => respond_whole(shared, generation, encoding, method, out),
        Range::Part { start, length } => {
            reply::set(
                &mut out,
                header::CONTENT_RANGE,
                &format!("bytes {start}-{}/{size}", start + length - 1),
            );
            respond_with_length(StatusCode::PARTIAL_CONTENT, out, method, length, || {
                stream_body(shared, ContentReader::range(generation, encoding, start, length))
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

/// Responds to `/metas`. Without filter and projection this is the whole content.
pub(super) async fn metas(
    shared: &SharedState,
    generation: Arc<Generation>,
    method: &Method,
    headers: &HeaderMap,
    query: Query,
) -> Response {
    let mut encoding = encoding::accepted(headers);
    let is_whole = query == Query::default();
    let mut validators = validators(&generation, encoding, (!is_whole).then_some(&query));
    match conditional::evaluate(headers, &validators) {
        Verdict::Proceed => {}
        Verdict::NotModified => return reply::not_modified(&validators),
        Verdict::Failed => return precondition_failed(&validators, false),
    }
    if is_whole {
        let out = response_headers(&validators, encoding);
        return respond_whole(shared, generation, encoding, method, out);
    }
    let cache_key = format!("{} {}", generation.key(), validators.etag);
    if let Some(body) = shared.cache.get(&cache_key) {
        return respond_buffered(&validators, method, body);
    }
    if *method == Method::HEAD {
        return head(shared, generation, &validators, encoding, query).await;
    }
    if encoding == Encoding::Identity
        && let Some(body) = read_inline(&generation, &query)
    {
        shared.cache.put(&cache_key, body.clone());
        return respond_buffered(&validators, method, body);
    }
    let permit = match encoding {
        Encoding::Identity => None,
        _ => shared.compressors.clone().try_acquire_owned().ok().map(Arc::new),
    };
    if permit.is_none() && encoding != Encoding::Identity {
        encoding = Encoding::Identity;
        validators = self::validators(&generation, encoding, Some(&query));
    }
    let jobs = match query.projection {
        Some(_) => &shared.projections,
        None => &shared.jobs,
    };
    let key = generation.key();
    let mut memory = shared.large.nothing();
    let prepared = loop {
        let request = Request {
            generation: generation.clone(),
            query: query.clone(),
            encoding,
            permit: permit.clone(),
            memory,
            jobs: jobs.clone(),
        };
        match jobs.run(move |abandoned| prepare(request, abandoned)).await {
            Ok(Err(ReadError::TooManyLarge { size })) => {
                let free = timeout(large::QUEUE_TIMEOUT, shared.large.reserve(size));
                let Ok(reserved) = free.await else {
                    return reply::busy();
                };
                memory = reserved;
            }
            other => break other,
        }
    };
    match prepared {
        Ok(Ok(Prepared::Complete(body))) => {
            // Under the encoding that it has.
            let cache_key = format!("{key} {}", validators.etag);
            shared.cache.put(&cache_key, body.clone());
            respond_buffered(&validators, method, body)
        }
        Ok(Ok(Prepared::Partial { first, rest, length })) => {
            let mut out = response_headers(&validators, encoding);
            if let Some(length) = length {
                out.insert(header::CONTENT_LENGTH, length.into());
            }
            let mut response = reply::empty(StatusCode::OK, out);
            *response.body_mut() = rest.into_body(first);
            response
        }
        Ok(Err(error)) => reply::internal_error("searching the content", &error),
        Err(error) => reply::internal_error("searching the content", &error),
    }
}

/// Returns a small response that can be read from the page cache, which holds recently read or written content. Returns
/// `None` for other responses; a blocking thread reads those.
fn read_inline(generation: &Arc<Generation>, query: &Query) -> Option<EncodedBody> {
    let (objects, capacity) = INLINE_LIMITS;
    if query.projection.is_some() || query.filter.is_empty() || chunk::buffer_limit(capacity) < capacity {
        return None;
    }
    let mut bytes = Vec::new();
    if let Some(selection) = generation.select_cached(&query.filter).ok()? {
        if selection.left() > objects {
            return None;
        }
        let mut reader = ContentReader::selected(generation.clone(), selection);
        if reader.read(&mut bytes, capacity).ok()? {
            return None;
        }
    }
    Some(EncodedBody {
        bytes: chunk::buffered(bytes),
        encoding: Encoding::Identity,
    })
}

/// First part of a response.
enum Prepared {
    /// The whole response.
    Complete(EncodedBody),
    /// Its beginning, the source of the remaining bytes, and the total length if known.
    Partial {
        first: Bytes,
        rest: Box<StreamingBody>,
        length: Option<u64>,
    },
}

/// Request for a selection.
struct Request {
    generation: Arc<Generation>,
    query: Query,
    encoding: Encoding,
    /// Permit of a compressor.
    permit: Option<Arc<OwnedSemaphorePermit>>,
    memory: Reservation,
    /// Jobs for the chunks after the first.
    jobs: Jobs,
}

/// Searches, and reads a small response completely: a thread switch costs more than reading it.
fn prepare(request: Request, abandoned: &Abandoned) -> Result<Prepared, ReadError> {
    let Request {
        generation,
        query,
        encoding,
        permit,
        memory,
        jobs,
    } = request;
    let complete = |bytes: Vec<u8>, encoding| {
        Ok(Prepared::Complete(EncodedBody {
            bytes: chunk::buffered(bytes),
            encoding,
        }))
    };
    let mut reader = if query.filter.is_empty() {
        ContentReader::whole(generation.clone())
    } else {
        match generation.select(&query.filter)? {
            None => return complete(Vec::new(), Encoding::Identity),
            Some(selection) => ContentReader::selected(generation.clone(), selection),
        }
    };
    let length = if query.projection.is_none() && encoding == Encoding::Identity {
        Some(reader.length()?)
    } else {
        None
    };
    // Responses that are too large for the cache are sent as they are read.
    let known = length.and_then(|length| usize::try_from(length).ok());
    let enough = match known {
        Some(length) if length > cache::max_size(encoding) => CHUNK,
        _ => chunk::buffer_limit(cache::max_size(encoding)),
    };
    let mut streaming = StreamingBody::uncompressed(Source::new(reader, query.projection, memory), jobs);
    let mut first = Vec::with_capacity(known.map_or(0, |length| length.min(enough)));
    if let Some(permit) = permit {
        // A response shorter than the minimum is sent as it is.
        if !streaming.fill(&mut first, MIN_SIZE, abandoned)? && first.len() < MIN_SIZE {
            return complete(first, Encoding::Identity);
        }
        if let Some(mut compressor) = Compressor::new(encoding).map_err(ReadError::Compress)? {
            compressor.write(&first).map_err(ReadError::Compress)?;
            // Not cleared: the buffer may be as large as an object.
            first = Vec::new();
            streaming.compressor = Some((compressor, permit));
        }
    }
    if !streaming.fill(&mut first, enough, abandoned)? {
        return complete(first, encoding);
    }
    let memory = streaming.source.take_memory(first.len());
    Ok(Prepared::Partial {
        first: chunk::buffered_with(first, memory),
        rest: Box::new(streaming),
        length,
    })
}

/// Returns the headers of a response to HEAD. The length is included only if a search suffices to find it, and the encoding
/// never: GET compresses no response that turns out to be small.
async fn head(
    shared: &SharedState,
    generation: Arc<Generation>,
    validators: &Validators,
    encoding: Encoding,
    query: Query,
) -> Response {
    let mut out = response_headers(validators, Encoding::Identity);
    if encoding == Encoding::Identity && query.projection.is_none() {
        let search = shared.jobs.run(move |_| match generation.select(&query.filter)? {
            Some(selection) => generation.selected_length(&selection),
            None => Ok(0),
        });
        match search.await {
            Ok(Ok(length)) => {
                out.insert(header::CONTENT_LENGTH, length.into());
            }
            Ok(Err(error)) => return reply::internal_error("searching the content", &error),
            Err(error) => return reply::internal_error("searching the content", &error),
        }
    }
    reply::empty(StatusCode::OK, out)
}

/// Returns validators whose tag covers content, encoding and query: same tag, same bytes.
fn validators(generation: &Generation, encoding: Encoding, query: Option<&Query>) -> Validators {
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
        tag.push_str(&reply::short_hash(hash));
    }
    Validators {
        etag: reply::etag(&tag, encoding),
        content: Some(manifest.digest.clone()),
        modified: Some(conditional::time(manifest.stored_at)),
    }
}

fn response_headers(validators: &Validators, encoding: Encoding) -> HeaderMap {
    let mut headers = reply::validator_headers(validators);
    headers.insert(header::CONTENT_TYPE, JSON_LINES);
    if let Some(token) = encoding::token(encoding) {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(token));
    }
    headers
}

fn precondition_failed(validators: &Validators, typed: bool) -> Response {
    let mut headers = reply::validator_headers(validators);
    if typed {
        headers.insert(header::CONTENT_TYPE, JSON_LINES);
    }
    reply::empty(StatusCode::PRECONDITION_FAILED, headers)
}

/// Responds with a whole catalog in one of its stored encodings.
fn respond_whole(
    shared: &SharedState,
    generation: Arc<Generation>,
    encoding: Encoding,
    method: &Method,
    headers: HeaderMap,
) -> Response {
    let size = generation.size(encoding);
    respond_with_length(StatusCode::OK, headers, method, size, || {
        stream_body(shared, ContentReader::range(generation, encoding, 0, size))
    })
}

fn respond_buffered(validators: &Validators, method: &Method, body: EncodedBody) -> Response {
    let headers = response_headers(validators, body.encoding);
    let length = body.bytes.len() as u64;
    respond_with_length(StatusCode::OK, headers, method, length, || Body::from(body.bytes))
}

fn stream_body(shared: &SharedState, reader: ContentReader) -> Body {
    StreamingBody::uncompressed(Source::Plain(reader), shared.jobs.clone()).into_body(Bytes::new())
}

fn respond_with_length(
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
