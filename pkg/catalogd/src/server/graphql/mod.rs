//! `POST …/graphql`: queries over a catalog's objects, with a schema inferred from its data.
//!
//! The first query of some content infers the schema, which is cached by the content's digest. Responses depend only on
//! content and request, so small ones are cached, too.

mod limits;
mod names;
#[cfg(test)]
mod properties;
mod row;
mod schema;
mod shape;

use std::{sync::Arc, time::Duration};

use async_graphql::{Request, Variables, dynamic::Schema, parser::parse_query};
use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::Response,
};
use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::{
    sync::{OnceCell, Semaphore},
    time::timeout,
};

use self::{row::Budget, shape::Shape};
use super::{
    content::SharedState,
    document, encoding,
    read::{ContentReader, Lines, ReadError},
    reply,
};
use crate::storage::Generation;

/// Maximum size of a request body, in bytes.
const MAX_BODY: usize = 1024 * 1024;
/// Timeout of receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of waiting for a free slot, and for the schema of content that is queried for the first time.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum number of queries that run concurrently.
const MAX_CONCURRENT: usize = 4;
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

type SchemaCell = Arc<OnceCell<Schema>>;

/// GraphQL service of all catalogs.
#[derive(Debug)]
pub(super) struct GraphQl {
    /// Schemas by the cache key of their content, the most recently used last.
    schemas: Mutex<Vec<(String, SchemaCell)>>,
    /// Limits schema inference to one catalog at a time.
    inference: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

impl Default for GraphQl {
    fn default() -> Self {
        Self {
            schemas: Mutex::default(),
            inference: Arc::new(Semaphore::new(1)),
            running: Arc::new(Semaphore::new(MAX_CONCURRENT)),
        }
    }
}

/// GraphQL request.
#[derive(Debug)]
pub(super) struct Query {
    text: String,
    variables: Value,
    operation: Option<String>,
}

impl Query {
    /// Reads a request body.
    pub(super) async fn read(body: Body) -> Result<Self, reply::Rejection> {
        let rejection = |line| Box::new(reply::text(StatusCode::BAD_REQUEST, line));
        let invalid = || rejection("Invalid request body");
        let body = timeout(BODY_TIMEOUT, axum::body::to_bytes(body, MAX_BODY))
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or_else(invalid)?;
        // Like upstream's decoder: only the first value counts, and keys are case-insensitive.
        let first = serde_json::Deserializer::from_slice(&body)
            .into_iter::<Value>()
            .next();
        let fields = match first {
            Some(Ok(Value::Object(fields))) => fields,
            Some(Ok(Value::Null)) => serde_json::Map::new(),
            _ => return Err(invalid()),
        };
        let (mut query, mut variables, mut operation) = (String::new(), Value::Null, None);
        for (key, value) in fields {
            match (key.to_ascii_lowercase().as_str(), value) {
                ("query", Value::String(text)) => query = text,
                ("variables", value @ Value::Object(_)) => variables = value,
                ("operationname", Value::String(name)) => operation = Some(name),
                ("query" | "variables" | "operationname", Value::Null) => {}
                ("query" | "variables" | "operationname", _) => return Err(invalid()),
                _ => {}
            }
        }
        if query.is_empty() {
            return Err(rejection("Query cannot be empty"));
        }
        if query.len() > limits::MAX_QUERY {
            return Err(rejection("Query too large"));
        }
        Ok(Self {
            text: query,
            variables,
            operation: operation.filter(|name| !name.is_empty()),
        })
    }

    /// Returns the cache key of the response.
    fn cache_key(&self, content: &str, encoding: crate::storage::Encoding) -> String {
        let mut hash = Sha256::new();
        let (variables, operation) = (self.variables.to_string(), self.operation.as_deref());
        for part in [&self.text, &variables, operation.unwrap_or_default()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        reply::etag(
            &format!("graphql-{content}-{}", reply::short_hash(hash)),
            encoding,
        )
    }
}

impl GraphQl {
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
            Err(_) => return busy(),
        };
        let Ok(Ok(permit)) = timeout(QUEUE_TIMEOUT, self.running.clone().acquire_owned()).await else {
            return busy();
        };
        let result = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let (text, ok) = run(&schema, generation, query);
            (document::encode(encoding, &text), ok)
        });
        let (body, ok) = match result.await {
            Ok(result) => result,
            Err(error) => return reply::internal_error("running a query", &error),
        };
        match body {
            Ok(body) => {
                if ok {
                    shared.cache.put(&tag, body.clone());
                }
                document::set_json_body(&mut response, body, true);
                response
            }
            Err(error) => reply::internal_error("compressing an answer", &error),
        }
    }

    /// Returns the schema of a catalog's content, inferring it once. Inference continues after all waiting requests
    /// timed out.
    async fn schema(&self, generation: Arc<Generation>) -> Result<Schema, InferenceError> {
        let (cell, inference) = (self.cell(&generation.key()), self.inference.clone());
        let found = tokio::spawn(async move {
            let schema = cell.get_or_try_init(async || {
                let _turn = inference.acquire().await;
                tokio::task::spawn_blocking(move || infer_schema(generation))
                    .await
                    .map_err(InferenceError::Interrupted)?
            });
            schema.await.cloned()
        });
        found.await.map_err(InferenceError::Interrupted)?
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

fn busy() -> Response {
    let mut response = reply::text(StatusCode::SERVICE_UNAVAILABLE, "503 Service Unavailable");
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// Infers the schema by inference the whole catalog once.
fn infer_schema(generation: Arc<Generation>) -> Result<Schema, InferenceError> {
    let mut shape = Shape::default();
    let mut lines = Lines::new(ContentReader::whole(generation));
    while let Some(object) = lines.next().map_err(ReadError::Storage)? {
        shape.add(object).map_err(ReadError::Object)?;
    }
    schema::build(&shape).map_err(|error| InferenceError::Build(error.to_string()))
}

/// Runs a query; returns the response and whether it has no errors. Blocks.
fn run(schema: &Schema, generation: Arc<Generation>, query: Query) -> (Vec<u8>, bool) {
    let failed = |message: String| {
        let text = document::json(&serde_json::json!({"data": null, "errors": [{"message": message}]}));
        (text, false)
    };
    if let Err(message) = limits::check_brackets(&query.text) {
        return failed(message);
    }
    let document = match parse_query(&query.text) {
        Ok(document) => document,
        Err(error) => return failed(format!("query parse error: {error}")),
    };
    if let Err(message) = limits::check_document(&document) {
        return failed(message);
    }
    let mut request = Request::new(String::new())
        .variables(Variables::from_json(query.variables))
        .data(generation)
        .data(Arc::new(Budget::new()));
    request.operation_name = query.operation;
    request.set_parsed_query(document);
    let response = futures::executor::block_on(schema.execute(request));
    (document::json(&response), response.is_ok())
}
