//! `POST …/graphql`: queries over a catalog's objects, with a schema inferred from its data.
//!
//! The first query of some content infers the schema, which is cached until the content is replaced or opened again. Responses depend only on
//! content and request, so small ones are cached, too.

mod answer;
mod limits;
mod names;
#[cfg(test)]
mod properties;
mod request;
mod row;
mod schema;
mod shape;

use std::{io, sync::Arc, time::Duration};

use async_graphql::{Request, ServerError, Variables, dynamic::Schema, parser::parse_query};
use axum::{
    body::Body,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use self::{
    answer::{Answer, Chunks},
    request::{Query, Reader},
    row::{Budget, MAX_BYTES},
    shape::{Shape, ShapeSize},
};
use super::{
    content::SharedState,
    document, encoding,
    read::{ContentReader, Lines, ReadError},
    reply,
};
use crate::storage::{Encoding, Generation};

/// Timeout of waiting for the memory of an answer, and for the schema of content that is queried for the first time.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of queries that run concurrently.
const MAX_CONCURRENT: usize = 4;
/// Memory of all answers, in bytes. Beyond what queries reserve that run, 16 MiB of answers may be cached or on their way to clients
/// before fewer queries run.
const MAX_ANSWERS: usize = MAX_CONCURRENT * MAX_BYTES as usize + 16 * 1024 * 1024;
/// Maximum number of cached schemas; the least recently used is evicted first.
const MAX_SCHEMAS: usize = 16;

/// Failure to infer a schema.
#[derive(Debug, thiserror::Error)]
enum InferenceError {
    #[error("the catalog's objects cannot be read")]
    Read(#[from] ReadError),
    #[error("no schema can be made of the catalog: {0}")]
    Build(String),
    #[error("looking for the schema was given up")]
    Interrupted(#[source] tokio::task::JoinError),
}

/// Inferred schema of some content. Clones share it.
#[derive(Clone, Debug)]
struct Inferred {
    schema: Schema,
    size: ShapeSize,
}

/// Schema of some content, or the reason why there is none. The content alone decides both.
type SchemaCell = Arc<OnceCell<Result<Inferred, String>>>;

/// GraphQL service of all catalogs.
#[derive(Debug)]
pub(super) struct GraphQl {
    /// Schemas by the cache key of their content, the most recently used last.
    schemas: Mutex<Vec<(String, SchemaCell)>>,
    /// Limits schema inference to one catalog at a time.
    inference: Arc<Semaphore>,
    /// Memory of answers, a permit for each byte.
    memory: Arc<Semaphore>,
    reader: Reader,
}

impl Default for GraphQl {
    fn default() -> Self {
        Self {
            schemas: Mutex::default(),
            inference: Arc::new(Semaphore::new(1)),
            memory: Arc::new(Semaphore::new(MAX_ANSWERS)),
            reader: Reader::default(),
        }
    }
}

impl GraphQl {
    /// Reads a request body.
    pub(super) async fn read(&self, body: Body) -> Result<Query, reply::Rejection> {
        self.reader.read(body).await
    }

    /// Responds to a query.
    pub(super) async fn respond(
        &self,
        shared: &SharedState,
        generation: Arc<Generation>,
        headers: &HeaderMap,
        query: Query,
    ) -> Response {
        let encoding = encoding::accepted(headers);
        let tag = query.cache_key(&generation.key(), encoding);
        let mut response = reply::empty(StatusCode::OK, HeaderMap::new());
        if let Some(body) = shared.cache.get(&tag) {
            document::set_json_body(&mut response, body, true);
            return response;
        }
        let schema = match timeout(QUEUE_TIMEOUT, self.schema(generation.clone())).await {
            Ok(Ok(schema)) => schema,
            Ok(Err(error)) => return reply::internal_error("finding a schema", &error),
            Err(_) => return reply::busy(),
        };
        let memory = self.memory.clone().acquire_many_owned(MAX_BYTES);
        let Ok(Ok(memory)) = timeout(QUEUE_TIMEOUT, memory).await else {
            return reply::busy();
        };
        let result =
            tokio::task::spawn_blocking(move || answer(&schema, generation, &query, encoding, memory));
        match result.await {
            Ok(Ok((answer, ok))) => {
                if ok && let Some(body) = answer.cacheable() {
                    shared.cache.put(&tag, body);
                }
                document::set_json_headers(&mut response, answer.size, answer.encoding);
                *response.body_mut() = answer.into_body();
                response
            }
            Ok(Err(error)) => reply::internal_error("writing an answer", &error),
            Err(error) => reply::internal_error("running a query", &error),
        }
    }

    /// Returns the schema of a catalog's content, inferring it once. Inference continues after all waiting requests
    /// timed out; requests that wait for their turn leave nothing behind.
    async fn schema(&self, generation: Arc<Generation>) -> Result<Inferred, InferenceError> {
        self.inferred(&generation.key(), move || infer_schema(generation))
            .await
    }

    /// Returns the schema of content with a key. A failed read is tried again by the next request.
    async fn inferred(
        &self,
        content: &str,
        infer: impl FnOnce() -> Result<Inferred, InferenceError> + Send + 'static,
    ) -> Result<Inferred, InferenceError> {
        let cell = self.cell(content);
        if let Some(inferred) = cell.get() {
            return inferred.clone().map_err(InferenceError::Build);
        }
        // The semaphore is never closed.
        let turn = self.inference.clone().acquire_owned().await.ok();
        if let Some(inferred) = cell.get() {
            return inferred.clone().map_err(InferenceError::Build);
        }
        let inferred = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let inferred = match infer() {
                Ok(schema) => Ok(schema),
                Err(InferenceError::Build(reason)) => Err(reason),
                Err(error) => return Err(error),
            };
            // Only the job with the turn sets the cell.
            let _ = cell.set(inferred.clone());
            inferred.map_err(InferenceError::Build)
        });
        inferred.await.map_err(InferenceError::Interrupted)?
    }

    fn cell(&self, content: &str) -> SchemaCell {
        let mut schemas = self.schemas.lock();
        let cached = schemas
            .iter()
            .position(|(cached, _)| cached == content)
            .map(|at| schemas.remove(at));
        let (content, cell) = cached.unwrap_or_else(|| (content.to_owned(), SchemaCell::default()));
        if schemas.len() >= MAX_SCHEMAS {
            schemas.remove(0);
        }
        schemas.push((content, cell.clone()));
        cell
    }
}

/// Infers the schema: reads the whole catalog once.
fn infer_schema(generation: Arc<Generation>) -> Result<Inferred, InferenceError> {
    let mut shape = Shape::default();
    let mut lines = Lines::new(ContentReader::whole(generation));
    while let Some(object) = lines.next().map_err(ReadError::Storage)? {
        shape.add(object).map_err(ReadError::Object)?;
    }
    let schema = schema::build(&shape).map_err(|error| InferenceError::Build(error.to_string()))?;
    Ok(Inferred {
        schema,
        size: shape.size(),
    })
}

/// Runs a query; returns the encoded answer and whether it has no errors. Blocks.
fn answer(
    inferred: &Inferred,
    generation: Arc<Generation>,
    query: &Query,
    encoding: Encoding,
    memory: OwnedSemaphorePermit,
) -> io::Result<(Answer, bool)> {
    let written = run(inferred, generation, query).and_then(|response| {
        let ok = response.is_ok();
        let chunks = Chunks::of(response).map_err(|_| {
            let limit = MAX_BYTES / (1024 * 1024);
            format!("answer exceeds {limit} MiB: ask for fewer objects or fields")
        })?;
        Ok((chunks, ok))
    });
    let (chunks, ok) = match written {
        Ok(written) => written,
        Err(message) => {
            let refusal = async_graphql::Response::from_errors(vec![ServerError::new(message, None)]);
            (Chunks::of(refusal)?, false)
        }
    };
    Ok((chunks.encode(encoding, memory)?, ok))
}

/// Runs a query. The error is for the client. Blocks.
fn run(
    inferred: &Inferred,
    generation: Arc<Generation>,
    query: &Query,
) -> Result<async_graphql::Response, String> {
    limits::check_brackets(&query.text)?;
    let document = parse_query(&query.text).map_err(|error| format!("query parse error: {error}"))?;
    limits::check_document(&document)?;
    let budget = Budget::new();
    // The library answers introspection by itself, so its cost is subtracted first.
    let introspected = limits::introspected_values(&document, inferred.size);
    budget.spend(introspected.saturating_mul(row::INTROSPECTED))?;
    // The reader of requests found no error.
    let variables = serde_json::from_str(&query.variables).unwrap_or(Value::Null);
    let mut request = Request::new(String::new())
        .variables(Variables::from_json(variables))
        .data(generation)
        .data(Arc::new(budget));
    request.operation_name.clone_from(&query.operation);
    request.set_parsed_query(document);
    Ok(futures::executor::block_on(inferred.schema.execute(request)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::storage::StorageError;

    #[tokio::test]
    async fn content_without_a_schema_is_read_once() {
        let graphql = GraphQl::default();
        let reads = Arc::new(AtomicU32::new(0));
        let counted = |error: fn() -> InferenceError| {
            let reads = reads.clone();
            move || {
                reads.fetch_add(1, Ordering::Relaxed);
                Err(error())
            }
        };
        for expected in [1, 2] {
            let unread = counted(|| ReadError::Storage(StorageError::Interrupted).into());
            graphql.inferred("a", unread).await.unwrap_err();
            assert_eq!(reads.load(Ordering::Relaxed), expected, "a disk may recover");
        }
        for _ in 0..2 {
            let unfit = counted(|| InferenceError::Build("no".to_owned()));
            let error = graphql.inferred("a", unfit).await.unwrap_err();
            assert!(matches!(error, InferenceError::Build(_)), "{error}");
            assert_eq!(reads.load(Ordering::Relaxed), 3);
        }
    }
}
