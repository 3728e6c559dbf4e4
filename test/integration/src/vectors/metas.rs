//! `metas.jsonl`: catalogd's content API against upstream's recorded answers. Two kinds: `/all` and `/metas`, and
//! GraphQL.

use super::catalogs::missing;
use super::{Report, deviations, rows};
use http::{Request, Response, header};
use http_body_util::BodyExt;
use olm_catalogd::{
    server::{Metrics, Options, router_with},
    storage::{CatalogName, Origin, Store},
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use tower::ServiceExt;

/// `Fri, 02 Jan 2026 03:04:05 GMT`, the age of the recorded catalogs.
const STORED_AT: i64 = 1_767_323_045;
/// The recorded catalog that is in no file.
const SMALL: &str = "{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"d\"}";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    id: u32,
    method: String,
    path: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    status: u16,
    #[serde(default)]
    content_type: String,
    #[serde(default)]
    response_headers: BTreeMap<String, String>,
    /// Absent where there is no body.
    #[serde(default)]
    raw_sha256: String,
}

/// What came back, decoded.
struct Answer {
    status: u16,
    headers: http::HeaderMap,
    encoded: bool,
    length: usize,
    declared: Option<u64>,
    sha256: String,
}

/// Runs the cases.
pub fn run(dir: &Path) -> Report {
    let mut report = Report::new("content-api");
    let cases: Vec<Row> = rows::<serde_json::Value>(&dir.join("metas.jsonl"), &mut report)
        .into_iter()
        .filter(|row| !row["path"].as_str().unwrap_or_default().contains("/graphql"))
        .filter_map(|row| match serde_json::from_value(row) {
            Ok(row) => Some(row),
            Err(error) => {
                report.wrong.push(format!("metas.jsonl: {error}"));
                None
            }
        })
        .collect();
    // On a thread of its own: callers may be within a runtime.
    let compared = std::thread::scope(|scope| {
        scope
            .spawn(|| compare(dir, &cases))
            .join()
            .unwrap_or_else(|_| Err(anyhow::anyhow!("the runner panicked")))
    });
    match compared {
        Ok(answers) => judge(&cases, answers, &mut report),
        Err(error) => report.wrong.push(format!("content-api: {error:#}")),
    }
    report
}

fn judge(cases: &[Row], answers: Vec<Option<Answer>>, report: &mut Report) {
    let listed = deviations::listed("content-api");
    for (row, answer) in cases.iter().zip(answers) {
        let Some(answer) = answer else {
            report.skip("the catalog that is asked");
            continue;
        };
        let (difference, ours) = (row.differs(&answer), answer.summary());
        match listed.get(row.id.to_string().as_str()) {
            None => report.count(difference.map(|text| format!("{}: {text}", row.id))),
            Some(expected) if difference.is_some() && *expected == ours => {
                report.cases += 1;
                report.deviating += 1;
            }
            Some(expected) => report.count(Some(format!(
                "{}: listed as {expected:?}, ours is {ours:?}",
                row.id
            ))),
        }
    }
}

impl Row {
    fn differs(&self, answer: &Answer) -> Option<String> {
        let header = |name: &str| {
            answer
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
        };
        let mut faults = Vec::new();
        let mut check = |what: &str, theirs: &str, ours: &str| {
            if theirs != ours {
                faults.push(format!("{what} {theirs:?}, ours {ours:?}"));
            }
        };
        check("status", &self.status.to_string(), &answer.status.to_string());
        check("content type", &self.content_type, header("content-type"));
        match self.raw_sha256.as_str() {
            "" => check("body", "0 bytes", &format!("{} bytes", answer.length)),
            recorded => check("body", recorded, &answer.sha256),
        }
        for (name, theirs) in &self.response_headers {
            if name.eq_ignore_ascii_case("content-length") {
                // What is compressed has another length than what was recorded uncompressed.
                if !answer.encoded {
                    check(
                        name,
                        theirs,
                        &answer
                            .declared
                            .map(|length| length.to_string())
                            .unwrap_or_default(),
                    );
                }
            } else {
                check(name, theirs, header(name));
            }
        }
        check("Vary", "Accept-Encoding", header("vary"));
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

/// The recorded catalogs, served, and the names of those that are there. They go with the folder.
pub(super) fn served(
    dir: &Path,
    options: &Options,
) -> anyhow::Result<(axum::Router, Vec<&'static str>, tempfile::TempDir)> {
    let scratch = tempfile::tempdir()?;
    let small = scratch.path().join("small");
    std::fs::create_dir(&small)?;
    std::fs::write(small.join("catalog.json"), SMALL)?;
    let store = Store::open(scratch.path().join("catalogs"))?;
    let mut there = Vec::new();
    for (name, source) in [
        ("medium", dir.join("catalogs/medium")),
        ("synthetic", dir.join("catalogs/splits/metas-synthetic")),
        ("a.b-c", small),
    ] {
        let whole = name != "medium" || missing(&dir.join("catalogs"), &["medium"]).is_none();
        if whole && source.is_dir() {
            let origin = Origin {
                requested: name.to_owned(),
                resolved: name.to_owned(),
                unpacked_at: STORED_AT,
            };
            store.store(&CatalogName::new(name)?, &source, origin, STORED_AT, &|| false)?;
            there.push(name);
        }
    }
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    Ok((router_with(Arc::new(store), metrics, options), there, scratch))
}

/// Whether a path is of a recorded catalog that is not there.
pub(super) fn absent(path: &str, there: &[&str]) -> bool {
    ["medium", "synthetic"]
        .iter()
        .any(|name| !there.contains(name) && path.contains(&format!("/{name}/")))
}

impl Answer {
    /// The status and the length, or the kind of what upstream does not have.
    fn summary(&self) -> String {
        if self
            .headers
            .get("content-type")
            .is_some_and(|kind| kind == "application/json")
        {
            return format!("{} application/json", self.status);
        }
        format!("{} {} bytes", self.status, self.length)
    }
}

fn compare(dir: &Path, cases: &[Row]) -> anyhow::Result<Vec<Option<Answer>>> {
    let (router, there, _scratch) = served(dir, &Options::default())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    cases
        .iter()
        .map(|row| {
            if absent(&row.path, &there) {
                return Ok(None);
            }
            let mut request = Request::builder().method(row.method.as_str()).uri(&row.path);
            for (name, value) in &row.headers {
                request = request.header(name, value);
            }
            let request = request.body(String::new())?;
            runtime
                .block_on(async { read(router.clone().oneshot(request).await?).await })
                .map(Some)
        })
        .collect()
}

async fn read<B>(response: Response<B>) -> anyhow::Result<Answer>
where
    B: http_body::Body<Error: std::error::Error + Send + Sync + 'static>,
{
    let (parts, body) = response.into_parts();
    let exact = body.size_hint().exact();
    let declared = parts
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse().ok());
    let raw = body.collect().await?.to_bytes();
    let encoding = parts
        .headers
        .get(header::CONTENT_ENCODING)
        .and_then(|value| value.to_str().ok());
    let mut decoded = Vec::new();
    match encoding {
        Some("gzip") => flate2::read::GzDecoder::new(raw.as_ref()).read_to_end(&mut decoded)?,
        Some("zstd") => zstd::Decoder::new(raw.as_ref())?.read_to_end(&mut decoded)?,
        _ => {
            decoded.extend_from_slice(&raw);
            0
        }
    };
    let sha256 = Sha256::digest(&decoded)
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    Ok(Answer {
        status: parts.status.as_u16(),
        encoded: encoding.is_some(),
        headers: parts.headers,
        length: decoded.len(),
        declared: declared.or(exact),
        sha256,
    })
}
