//! Vectors of GraphQL: rows of `metas.jsonl` with the path `/graphql`. Answers of catalogd are compared with upstream's recorded
//! answers.

use super::Report;
use super::content::{self, Recorded, RecordedRequest};
use anyhow::Result;
use axum::body::Body;
use http::{Request, Response, header};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// Maximum length of a shown answer, in characters.
const MAX_SHOWN: usize = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    #[serde(flatten)]
    recorded: RecordedRequest,
    /// Name of the recorded server, which tells its enabled feature gates.
    server: String,
    #[serde(default)]
    request_body: String,
    status: u16,
    content_type: String,
    /// Body of a text answer.
    #[serde(default)]
    body: String,
    /// Body of a JSON answer.
    json: Option<Value>,
}

struct Answer {
    status: u16,
    content_type: String,
    body: String,
}

/// Runs the cases.
pub fn run(dir: &Path) -> Report {
    content::run::<Row>(dir, "graphql", |path| path.ends_with("/graphql"))
}

impl Recorded for Row {
    type Answer = Answer;

    fn recorded(&self) -> &RecordedRequest {
        &self.recorded
    }

    fn graphql(&self) -> bool {
        self.server == "all-enabled"
    }

    fn request(&self) -> http::Result<Request<Body>> {
        let request = self.recorded.request();
        request.body(Body::from(self.request_body.clone()))
    }

    async fn read(answer: Response<Body>) -> Result<Answer> {
        let (parts, body) = answer.into_parts();
        let content_type = parts.headers.get(header::CONTENT_TYPE);
        Ok(Answer {
            status: parts.status.as_u16(),
            content_type: content_type
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned(),
            body: String::from_utf8(body.collect().await?.to_bytes().to_vec())?,
        })
    }

    fn difference(&self, answer: &Answer) -> Option<String> {
        let body = match &self.json {
            Some(json) => serde_json::from_str(&answer.body)
                .is_ok_and(|ours| sorted_lists(json.clone()) == sorted_lists(ours)),
            None => self.recorded.method == "HEAD" || self.body == answer.body,
        };
        let equal = self.status == answer.status && self.content_type == answer.content_type && body;
        (!equal).then(|| format!("ours is {}", Self::summary(answer)))
    }

    /// Returns the status with the first error or, without an error, the start of the answer.
    fn summary(answer: &Answer) -> String {
        let first_error = serde_json::from_str::<Value>(&answer.body)
            .ok()
            .and_then(|json| Some(json["errors"][0]["message"].as_str()?.lines().next()?.to_owned()));
        let text = first_error.as_deref().unwrap_or(answer.body.trim_end());
        format!(
            "{} {}",
            answer.status,
            text.chars().take(MAX_SHOWN).collect::<String>()
        )
    }
}

/// Sorts the schemas and types, which upstream lists in random order.
fn sorted_lists(mut json: Value) -> Value {
    for list in ["/data/summary/schemas", "/data/__schema/types"] {
        if let Some(list) = json.pointer_mut(list).and_then(Value::as_array_mut) {
            list.sort_by_key(ToString::to_string);
        }
    }
    json
}
