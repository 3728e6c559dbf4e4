//! GraphQL requests. Their bodies are read, and kept while they wait, within a limit of memory.

use std::{fmt, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::StatusCode,
};
use http_body_util::BodyExt as _;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value, value::RawValue};
use sha2::{Digest, Sha256};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout, timeout_at},
};

use super::limits;
use crate::{server::reply, storage::Encoding};

/// Maximum size of a request body, in bytes.
const MAX_BODY: usize = 1024 * 1024;
/// Maximum size of a body that needs no permit, in bytes: every request in flight may hold one.
const SMALL_BODY: usize = 16 * 1024;
/// Maximum number of larger bodies, until their queries end.
const LARGE_BODIES: usize = 8;
/// Maximum size of the variables, in bytes. Their values take up to a hundred times as much memory.
const MAX_VARIABLES: usize = 16 * 1024;
/// Timeout of receiving a body, and of waiting for the permit of a larger one.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// GraphQL request.
#[derive(Debug)]
pub(in crate::server) struct Query {
    pub(super) text: String,
    /// Text of the variables, a JSON object or `null`: values take far more memory than their text, so the text is parsed
    /// when the query runs.
    pub(super) variables: String,
    pub(super) operation: Option<String>,
    /// Permit of a larger body, as its texts may be as large.
    _permit: Option<OwnedSemaphorePermit>,
}

/// Reader of request bodies.
#[derive(Debug)]
pub(super) struct Reader {
    large: Arc<Semaphore>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            large: Arc::new(Semaphore::new(LARGE_BODIES)),
        }
    }
}

impl Reader {
    /// Reads a request.
    pub(super) async fn read(&self, body: Body) -> Result<Query, reply::Rejection> {
        let (bytes, permit) = self.bytes(body).await?;
        Query::parse(&bytes, permit)
    }

    /// Reads a body. A body is first read up to [`SMALL_BODY`], so slow clients with large bodies delay only each other.
    async fn bytes(
        &self,
        mut body: Body,
    ) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), reply::Rejection> {
        let (mut bytes, mut permit) = (Vec::new(), None);
        let mut deadline = Instant::now() + BODY_TIMEOUT;
        while let Some(data) = next_data(&mut body, deadline).await? {
            let length = bytes.len() + data.len();
            if length > MAX_BODY {
                return invalid();
            }
            if length > SMALL_BODY && permit.is_none() {
                let acquired = timeout(BODY_TIMEOUT, self.large.clone().acquire_owned()).await;
                let Ok(Ok(acquired)) = acquired else {
                    return Err(Box::new(reply::busy()));
                };
                permit = Some(acquired);
                deadline = Instant::now() + BODY_TIMEOUT;
            }
            bytes.extend_from_slice(&data);
        }
        Ok((bytes, permit))
    }
}

/// Returns the next bytes of a body, `None` at its end.
async fn next_data(body: &mut Body, deadline: Instant) -> Result<Option<Bytes>, reply::Rejection> {
    let frame = timeout_at(deadline, body.frame()).await.or_else(|_| invalid())?;
    let frame = frame.transpose().or_else(|_| invalid())?;
    // Trailers are no data.
    Ok(frame.map(|frame| frame.into_data().unwrap_or_default()))
}

fn refuse<T>(line: &str) -> Result<T, reply::Rejection> {
    Err(Box::new(reply::text(StatusCode::BAD_REQUEST, line)))
}

fn invalid<T>() -> Result<T, reply::Rejection> {
    refuse("Invalid request body")
}

impl Query {
    fn parse(body: &[u8], permit: Option<OwnedSemaphorePermit>) -> Result<Self, reply::Rejection> {
        // Like upstream's decoder: only the first value counts.
        let first = serde_json::Deserializer::from_slice(body)
            .into_iter::<Fields<'_>>()
            .next();
        let Some(Ok(fields)) = first else {
            return invalid();
        };
        let variables = fields.variables.map_or("null", RawValue::get);
        if !variables.starts_with(['{', 'n']) {
            return invalid();
        }
        if fields.query.is_empty() {
            return refuse("Query cannot be empty");
        }
        if fields.query.len() > limits::MAX_QUERY {
            return refuse("Query too large");
        }
        if variables.len() > MAX_VARIABLES {
            return refuse("Variables too large");
        }
        // A raw value may be nested deeper than a value.
        if serde_json::from_str::<Option<Map<String, Value>>>(variables).is_err() {
            return invalid();
        }
        Ok(Self {
            text: fields.query,
            variables: variables.to_owned(),
            operation: fields.operation.filter(|name| !name.is_empty()),
            _permit: permit,
        })
    }

    /// Returns the cache key of the response.
    pub(super) fn cache_key(&self, content: &str, encoding: Encoding) -> String {
        let mut hash = Sha256::new();
        let operation = self.operation.as_deref().unwrap_or_default();
        for part in [&self.text, &self.variables, operation] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        reply::etag(
            &format!("graphql-{content}-{}", reply::short_hash(hash)),
            encoding,
        )
    }
}

/// Fields of a request. Like upstream's decoder: keys are case-insensitive, the last of equal keys counts, and null
/// changes nothing.
#[derive(Default)]
struct Fields<'a> {
    query: String,
    variables: Option<&'a RawValue>,
    operation: Option<String>,
}

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E>(self) -> Result<Fields<'de>, E> {
        Ok(Fields::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
        let mut fields = Fields::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.to_ascii_lowercase().as_str() {
                "query" => {
                    if let Some(query) = map.next_value::<Option<String>>()? {
                        fields.query = query;
                    }
                }
                "variables" => fields.variables = map.next_value::<Option<&RawValue>>()?.or(fields.variables),
                "operationname" => {
                    fields.operation = map.next_value::<Option<String>>()?.or(fields.operation);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(fields)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use axum::body::to_bytes;
    use futures::{StreamExt as _, stream};

    use super::*;

    fn parse(body: &str) -> Result<(String, String, Option<String>), StatusCode> {
        Query::parse(body.as_bytes(), None)
            .map(|query| (query.text, query.variables, query.operation))
            .map_err(|response| response.status())
    }

    #[test]
    fn bodies_are_read_like_upstream() {
        let ok = |query: &str, variables: &str, operation: Option<&str>| {
            Ok((
                query.to_owned(),
                variables.to_owned(),
                operation.map(str::to_owned),
            ))
        };
        assert_eq!(parse(r#"{"query":"a"}"#), ok("a", "null", None));
        assert_eq!(
            parse(r#" {"QUERY":"a","Variables": {"x": [1]} ,"operationName":"b","more":[{}]} {"query":1}"#),
            ok("a", r#"{"x": [1]}"#, Some("b"))
        );
        assert_eq!(
            parse(
                r#"{"query":"a","query":"b","query":null,"variables":{},"variables":null,"operationName":""}"#
            ),
            ok("b", "{}", None)
        );
        let deep = format!(
            r#"{{"query":"a","variables":{{"x":{}{}}}}}"#,
            "[".repeat(500),
            "]".repeat(500)
        );
        for body in [
            "",
            "null",
            "[]",
            "{}",
            "{",
            r#"{"query":1}"#,
            r#"{"query":"a","variables":[]}"#,
            r#"{"query":"a","variables":"x"}"#,
            r#"{"query":"a","operationName":{}}"#,
            &deep,
        ] {
            assert_eq!(parse(body), Err(StatusCode::BAD_REQUEST), "{body}");
        }
    }

    #[tokio::test]
    async fn variables_that_would_take_much_memory_are_refused() {
        let items = "{\"\":0},".repeat(MAX_VARIABLES / 7);
        let body = format!(r#"{{"query":"{{a}}","variables":{{"a":[{items}0]}}}}"#);
        let refusal = Query::parse(body.as_bytes(), None).unwrap_err();
        assert_eq!(refusal.status(), StatusCode::BAD_REQUEST);
        let text = to_bytes(refusal.into_body(), 100).await.unwrap();
        assert_eq!(text, "Variables too large\n");
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_few_large_bodies_are_held() {
        let (reader, read) = (Arc::new(Reader::default()), Arc::new(AtomicUsize::new(0)));
        let mut requests = tokio::task::JoinSet::new();
        for _ in 0..3 * LARGE_BODIES {
            let (reader, read) = (reader.clone(), read.clone());
            let chunks = stream::iter(0..MAX_BODY / SMALL_BODY).map(move |_| {
                read.fetch_add(SMALL_BODY, Ordering::Relaxed);
                Ok::<_, Infallible>(vec![b' '; SMALL_BODY])
            });
            requests.spawn(async move {
                let body = Body::from_stream(chunks.chain(stream::pending()));
                reader.read(body).await.unwrap_err().status()
            });
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let held = read.load(Ordering::Relaxed);
        let most = LARGE_BODIES * MAX_BODY + 2 * LARGE_BODIES * 2 * SMALL_BODY;
        assert!(held <= most, "{held} bytes of {most}");
        // Small requests do not wait for them.
        let small = reader.read(Body::from(r#"{"query":"{a}"}"#));
        assert!(timeout(Duration::from_millis(1), small).await.unwrap().is_ok());
        let statuses = requests.join_all().await;
        assert!(statuses.contains(&StatusCode::SERVICE_UNAVAILABLE));
    }
}
