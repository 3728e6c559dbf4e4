//! `metas.jsonl`, the rows of `/graphql`: catalogd's queries against upstream's recorded answers.

use super::{Report, deviations, metas, rows};
use axum::body::Body;
use http::{Request, header};
use http_body_util::BodyExt;
use olm_catalogd::server::Options;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;
use tower::ServiceExt;

/// How much of an answer is shown.
const SHOWN: usize = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    id: u32,
    /// Which of upstream's gates were on.
    server: String,
    method: String,
    path: String,
    #[serde(default)]
    request_body: String,
    status: u16,
    content_type: String,
    /// Of a text.
    #[serde(default)]
    body: String,
    /// Of an answer to a query.
    json: Option<Value>,
}

struct Answer {
    status: u16,
    content_type: String,
    body: String,
}

/// Runs the cases.
pub fn run(dir: &Path) -> Report {
    let mut report = Report::new("graphql");
    let cases: Vec<Row> = rows::<Value>(&dir.join("metas.jsonl"), &mut report)
        .into_iter()
        .filter(|row| row["path"].as_str().unwrap_or_default().ends_with("/graphql"))
        .filter_map(|row| match serde_json::from_value(row) {
            Ok(row) => Some(row),
            Err(error) => {
                report.wrong.push(format!("metas.jsonl: {error}"));
                None
            }
        })
        .collect();
    // On a thread of its own: callers may be within a runtime.
    let answers = std::thread::scope(|scope| {
        scope
            .spawn(|| ask(dir, &cases))
            .join()
            .unwrap_or_else(|_| Err(anyhow::anyhow!("the runner panicked")))
    });
    let answers = match answers {
        Ok(answers) => answers,
        Err(error) => {
            report.wrong.push(format!("graphql: {error:#}"));
            return report;
        }
    };
    let listed = deviations::listed("graphql");
    for (row, answer) in cases.iter().zip(answers) {
        let Some(answer) = answer else {
            report.skip("the catalog that is asked");
            continue;
        };
        let (equal, ours) = (row.equals(&answer), answer.summary());
        match listed.get(row.id.to_string().as_str()) {
            None => report.count((!equal).then(|| format!("{}: ours is {ours}", row.id))),
            Some(expected) if !equal && *expected == ours => {
                report.cases += 1;
                report.deviating += 1;
            }
            Some(expected) => report.count(Some(format!(
                "{}: listed as {expected:?}, ours is {ours:?}",
                row.id
            ))),
        }
    }
    report
}

impl Row {
    fn equals(&self, answer: &Answer) -> bool {
        let body = match &self.json {
            Some(json) => {
                serde_json::from_str(&answer.body).is_ok_and(|ours| ordered(json.clone()) == ordered(ours))
            }
            None => self.method == "HEAD" || self.body == answer.body,
        };
        self.status == answer.status && self.content_type == answer.content_type && body
    }
}

impl Answer {
    /// The status, and what is wrong or else how the answer begins.
    fn summary(&self) -> String {
        let told = serde_json::from_str::<Value>(&self.body)
            .ok()
            .and_then(|json| Some(json["errors"][0]["message"].as_str()?.lines().next()?.to_owned()));
        let text = told.as_deref().unwrap_or(self.body.trim_end());
        format!("{} {}", self.status, text.chars().take(SHOWN).collect::<String>())
    }
}

/// Upstream lists schemas and types in random order.
fn ordered(mut json: Value) -> Value {
    for list in ["/data/summary/schemas", "/data/__schema/types"] {
        if let Some(list) = json.pointer_mut(list).and_then(Value::as_array_mut) {
            list.sort_by_key(ToString::to_string);
        }
    }
    json
}

fn ask(dir: &Path, cases: &[Row]) -> anyhow::Result<Vec<Option<Answer>>> {
    let (with, there, _scratch) = metas::served(
        dir,
        &Options {
            graphql: true,
            access: None,
        },
    )?;
    let (without, _, _) = metas::served(Path::new("/nonexistent"), &Options::default())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    cases
        .iter()
        .map(|row| {
            if metas::absent(&row.path, &there) {
                return Ok(None);
            }
            let router = if row.server == "all-enabled" {
                &with
            } else {
                &without
            };
            let request = Request::builder()
                .method(row.method.as_str())
                .uri(&row.path)
                .body(Body::from(row.request_body.clone()))?;
            runtime.block_on(async {
                let (parts, body) = router.clone().oneshot(request).await?.into_parts();
                let content_type = parts.headers.get(header::CONTENT_TYPE);
                Ok(Some(Answer {
                    status: parts.status.as_u16(),
                    content_type: content_type
                        .and_then(|value| value.to_str().ok())
                        .unwrap_or_default()
                        .to_owned(),
                    body: String::from_utf8(body.collect().await?.to_bytes().to_vec())?,
                }))
            })
        })
        .collect()
}
