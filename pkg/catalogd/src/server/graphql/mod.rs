//! `POST …/graphql`: queries over a catalog's objects, by a schema found in its data.
//!
//! The schema is found at the first query of a content and kept by its digest. Answers depend on content and
//! request alone, so small ones are kept, too.

mod limits;
mod names;
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
    content::Shared,
    document, encoding,
    read::{Lines, Raw, ReadError},
    reply,
};
use crate::storage::Generation;

/// Longest body of a request, in bytes.
const BODY: usize = 1024 * 1024;
/// How long a body may take to arrive.
const ARRIVE: Duration = Duration::from_secs(5);
/// How long a query waits for its turn, and for the schema of content that is asked for the first time.
const WAIT: Duration = Duration::from_secs(20);
/// Queries run at once.
const AT_ONCE: usize = 4;
/// Schemas kept; the least recently used goes first.
const SCHEMAS: usize = 16;

/// Why there is no schema.
#[derive(Debug, thiserror::Error)]
enum SchemaFault {
    #[error("the catalog's objects cannot be read")]
    Read(#[from] ReadError),
    #[error("no schema can be made of the catalog: {0}")]
    Build(String),
    #[error("looking for the schema was given up")]
    Interrupted(#[source] tokio::task::JoinError),
}

type Cell = Arc<OnceCell<Schema>>;

/// Answers queries.
#[derive(Debug)]
pub(super) struct Graph {
    /// Schemas by their content's key, the last used last.
    schemas: Mutex<Vec<(String, Cell)>>,
    /// Contents are read one at a time.
    reading: Arc<Semaphore>,
    running: Arc<Semaphore>,
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            schemas: Mutex::default(),
            reading: Arc::new(Semaphore::new(1)),
            running: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

/// A query as it was sent.
#[derive(Debug)]
pub(super) struct Query {
    text: String,
    variables: Value,
    operation: Option<String>,
}

impl Query {
    /// Reads a request's body.
    pub(super) async fn read(body: Body) -> Result<Self, reply::Refusal> {
        let refused = |line| Box::new(reply::text(StatusCode::BAD_REQUEST, line));
        let invalid = || refused("Invalid request body");
        let body = timeout(ARRIVE, axum::body::to_bytes(body, BODY))
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or_else(invalid)?;
        // As upstream's decoder: the first value counts, keys in any case.
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
            return Err(refused("Query cannot be empty"));
        }
        if query.len() > limits::QUERY {
            return Err(refused("Query too large"));
        }
        Ok(Self {
            text: query,
            variables,
            operation: operation.filter(|name| !name.is_empty()),
        })
    }

    /// What its answer is kept under.
    fn tag(&self, content: &str, form: crate::storage::Encoding) -> String {
        let mut hash = Sha256::new();
        let (variables, operation) = (self.variables.to_string(), self.operation.as_deref());
        for part in [&self.text, &variables, operation.unwrap_or_default()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        reply::tag(&format!("graphql-{content}-{}", reply::short(hash)), form)
    }
}

impl Graph {
    /// Answers a query.
    pub(super) async fn answer(
        &self,
        shared: &Shared,
        generation: Arc<Generation>,
        headers: &HeaderMap,
        query: Query,
    ) -> Response {
        let form = encoding::accepted(headers);
        let tag = query.tag(&generation.key(), form);
        let mut response = reply::empty(StatusCode::OK, HeaderMap::new());
        if let Some(answer) = shared.kept.get(&tag) {
            document::fill(&mut response, answer, true);
            return response;
        }
        let schema = match timeout(WAIT, self.schema(generation.clone())).await {
            Ok(Ok(schema)) => schema,
            Ok(Err(error)) => return reply::broken("finding a schema", &error),
            Err(_) => return busy(),
        };
        let Ok(Ok(permit)) = timeout(WAIT, self.running.clone().acquire_owned()).await else {
            return busy();
        };
        let ran = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let (text, good) = run(&schema, generation, query);
            (document::made(form, &text), good)
        });
        let (answer, good) = match ran.await {
            Ok(ran) => ran,
            Err(error) => return reply::broken("running a query", &error),
        };
        match answer {
            Ok(answer) => {
                if good {
                    shared.kept.put(&tag, answer.clone());
                }
                document::fill(&mut response, answer, true);
                response
            }
            Err(error) => reply::broken("compressing an answer", &error),
        }
    }

    /// The schema of a content, found once. Looking for it goes on when nobody waits for it any more.
    async fn schema(&self, generation: Arc<Generation>) -> Result<Schema, SchemaFault> {
        let (cell, reading) = (self.cell(&generation.key()), self.reading.clone());
        let found = tokio::spawn(async move {
            let schema = cell.get_or_try_init(async || {
                let _turn = reading.acquire().await;
                tokio::task::spawn_blocking(move || find(generation))
                    .await
                    .map_err(SchemaFault::Interrupted)?
            });
            schema.await.cloned()
        });
        found.await.map_err(SchemaFault::Interrupted)?
    }

    fn cell(&self, content: &str) -> Cell {
        let mut schemas = self.schemas.lock();
        let known = schemas
            .iter()
            .position(|(known, _)| known == content)
            .map(|at| schemas.remove(at));
        let (content, cell) = known.unwrap_or_else(|| (content.to_owned(), Cell::default()));
        if schemas.len() >= SCHEMAS {
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

/// Reads a whole catalog once.
fn find(generation: Arc<Generation>) -> Result<Schema, SchemaFault> {
    let mut shape = Shape::default();
    let mut lines = Lines::new(Raw::whole(generation));
    while let Some(object) = lines.next().map_err(ReadError::Storage)? {
        shape.add(object).map_err(ReadError::Object)?;
    }
    schema::build(&shape).map_err(|error| SchemaFault::Build(error.to_string()))
}

/// Runs a query; whether it went without errors. Blocks.
fn run(schema: &Schema, generation: Arc<Generation>, query: Query) -> (Vec<u8>, bool) {
    let failed = |message: String| {
        let text = document::json(&serde_json::json!({"data": null, "errors": [{"message": message}]}));
        (text, false)
    };
    if let Err(message) = limits::text(&query.text) {
        return failed(message);
    }
    let document = match parse_query(&query.text) {
        Ok(document) => document,
        Err(error) => return failed(format!("query parse error: {error}")),
    };
    if let Err(message) = limits::document(&document) {
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
