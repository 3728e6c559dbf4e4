//! Runner of the vectors in `metas.jsonl`, which are recorded requests to upstream's content server. It serves the recorded
//! catalogs, sends each request, and compares the responses. `metas` and `graphql` define which parts of a response are compared.

use super::catalogs::missing;
use super::{Report, deviations, rows};
use anyhow::{Result, anyhow};
use axum::body::Body;
use http::{Request, Response};
use olm_catalogd::{
    server::{Metrics, Options, router_with},
    storage::{Origin, Store, ValidCatalogName},
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tower::ServiceExt as _;

const FILE: &str = "metas.jsonl";
/// Time at which the recorded catalogs were stored, in seconds since the Unix epoch: `Fri, 02 Jan 2026 03:04:05 GMT`.
const STORED_AT: i64 = 1_767_323_045;
/// Content of a recorded catalog for which the vectors have no file.
const SMALL: &str = "{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"d\"}";

/// Common fields of a recorded request.
#[derive(Deserialize)]
pub(super) struct RecordedRequest {
    id: u32,
    pub(super) method: String,
    path: String,
}

impl RecordedRequest {
    /// Returns the request without headers and body.
    pub(super) fn request(&self) -> http::request::Builder {
        Request::builder().method(self.method.as_str()).uri(&self.path)
    }
}

/// A recorded request, and the comparison of its response.
pub(super) trait Recorded: DeserializeOwned + Sync {
    /// Compared parts of a response.
    type Answer: Send;

    /// Returns the common fields of the request.
    fn recorded(&self) -> &RecordedRequest;
    /// Returns true if the recorded server had GraphQL enabled.
    fn graphql(&self) -> bool;
    /// Returns the request to send.
    fn request(&self) -> http::Result<Request<Body>>;
    /// Reads the compared parts of a response.
    async fn read(answer: Response<Body>) -> Result<Self::Answer>;
    /// Returns the difference from upstream's response, if any.
    fn difference(&self, answer: &Self::Answer) -> Option<String>;
    /// Returns the response in the format of `docs/deviations.md`.
    fn summary(answer: &Self::Answer) -> String;
}

/// Runs the rows of `metas.jsonl` whose path belongs to the kind.
pub(super) fn run<R: Recorded>(dir: &Path, kind: &'static str, is_of_kind: impl Fn(&str) -> bool) -> Report {
    let mut report = Report::new(kind);
    let cases: Vec<R> = rows::<Value>(&dir.join(FILE), &mut report)
        .into_iter()
        .filter(|row| is_of_kind(row["path"].as_str().unwrap_or_default()))
        .filter_map(|row| match serde_json::from_value(row) {
            Ok(row) => Some(row),
            Err(error) => {
                report.wrong.push(format!("{FILE}: {error}"));
                None
            }
        })
        .collect();
    // The requests are sent from a separate thread, because the caller may run within a runtime.
    let answers = std::thread::scope(|scope| {
        let thread = scope.spawn(|| send_all(dir, &cases));
        thread
            .join()
            .unwrap_or_else(|_| Err(anyhow!("the runner panicked")))
    });
    let answers = match answers {
        Ok(answers) => answers,
        Err(error) => {
            report.wrong.push(format!("{kind}: {error:#}"));
            return report;
        }
    };
    let listed = deviations::listed(kind);
    for (row, answer) in cases.iter().zip(answers) {
        let Some(answer) = answer else {
            report.skip("the catalog that is asked");
            continue;
        };
        let id = row.recorded().id.to_string();
        let stated = listed.get(id.as_str()).copied();
        report.count_listed(&id, row.difference(&answer), &R::summary(&answer), stated);
    }
    report
}

/// Sends all requests. Returns the answers, and `None` for requests to missing catalogs.
fn send_all<R: Recorded>(dir: &Path, cases: &[R]) -> Result<Vec<Option<R::Answer>>> {
    let scratch = tempfile::tempdir()?;
    let (store, available) = store_catalogs(dir, scratch.path())?;
    let served = |options: &Options| {
        let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
        router_with(Arc::clone(&store), metrics, options)
    };
    let plain = served(&Options::default());
    let queried = served(&Options {
        graphql: true,
        access: None,
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    cases
        .iter()
        .map(|row| {
            if is_missing(&row.recorded().path, &available) {
                return Ok(None);
            }
            let router = if row.graphql() { &queried } else { &plain };
            let request = row.request()?;
            runtime
                .block_on(async { R::read(router.clone().oneshot(request).await?).await })
                .map(Some)
        })
        .collect()
}

/// Stores the recorded catalogs in a store of catalogd, and returns the store and the names of the available catalogs.
fn store_catalogs(dir: &Path, scratch: &Path) -> Result<(Arc<Store>, Vec<&'static str>)> {
    let small = scratch.join("small");
    std::fs::create_dir(&small)?;
    std::fs::write(small.join("catalog.json"), SMALL)?;
    let store = Store::open(scratch.join("catalogs"))?;
    let mut available = Vec::new();
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
                verified: None,
            };
            store.store(&ValidCatalogName::new(name)?, &source, origin, STORED_AT, &|| {
                false
            })?;
            available.push(name);
        }
    }
    Ok((Arc::new(store), available))
}

/// Returns true if the path belongs to a missing catalog.
fn is_missing(path: &str, available: &[&str]) -> bool {
    ["medium", "synthetic"]
        .iter()
        .any(|name| !available.contains(name) && path.contains(&format!("/{name}/")))
}
