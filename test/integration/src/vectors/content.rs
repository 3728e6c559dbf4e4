//! Common runner of `metas.jsonl`, recorded requests to upstream's content server. It serves the recorded catalogs,
//! sends each request, and compares the responses.

use super::catalogs::missing;
use super::{Report, deviations, rows};
use anyhow::{Result, anyhow};
use axum::body::Body;
use http::{Request, Response};
use olm_catalogd::{
    server::{Metrics, Options, router_with},
    storage::{CatalogName, Origin, Store},
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tower::ServiceExt as _;

const FILE: &str = "metas.jsonl";
/// `Fri, 02 Jan 2026 03:04:05 GMT`, the storage time of the recorded catalogs.
const STORED_AT: i64 = 1_767_323_045;
/// A recorded catalog without a file.
const SMALL: &str = "{\"schema\":\"olm.package\",\"name\":\"p\",\"defaultChannel\":\"d\"}";

/// Common fields of a recorded request.
#[derive(Deserialize)]
pub(super) struct Asked {
    id: u32,
    pub(super) method: String,
    path: String,
}

impl Asked {
    /// Returns the request without headers and body.
    pub(super) fn request(&self) -> http::request::Builder {
        Request::builder().method(self.method.as_str()).uri(&self.path)
    }
}

/// A recorded request with the comparison of its response.
pub(super) trait Recorded: DeserializeOwned + Sync {
    /// Compared parts of a response.
    type Answer: Send;

    fn asked(&self) -> &Asked;
    /// Returns true if the recorded server had GraphQL enabled.
    fn graphql(&self) -> bool;
    fn request(&self) -> http::Result<Request<Body>>;
    async fn read(answer: Response<Body>) -> Result<Self::Answer>;
    fn difference(&self, answer: &Self::Answer) -> Option<String>;
    /// Returns the response in the format of `docs/deviations.md`.
    fn summary(answer: &Self::Answer) -> String;
}

/// Runs the rows of `metas.jsonl` with a path of the kind.
pub(super) fn run<R: Recorded>(dir: &Path, kind: &'static str, mine: impl Fn(&str) -> bool) -> Report {
    let mut report = Report::new(kind);
    let cases: Vec<R> = rows::<Value>(&dir.join(FILE), &mut report)
        .into_iter()
        .filter(|row| mine(row["path"].as_str().unwrap_or_default()))
        .filter_map(|row| match serde_json::from_value(row) {
            Ok(row) => Some(row),
            Err(error) => {
                report.wrong.push(format!("{FILE}: {error}"));
                None
            }
        })
        .collect();
    // A separate thread: callers may be within a runtime.
    let answers = std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(dir, &cases));
        asked
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
        let id = row.asked().id.to_string();
        let stated = listed.get(id.as_str()).copied();
        report.count_listed(&id, row.difference(&answer), &R::summary(&answer), stated);
    }
    report
}

/// Sends all requests; returns `None` for those to missing catalogs.
fn ask<R: Recorded>(dir: &Path, cases: &[R]) -> Result<Vec<Option<R::Answer>>> {
    let scratch = tempfile::tempdir()?;
    let (store, there) = stored(dir, scratch.path())?;
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
            if absent(&row.asked().path, &there) {
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

/// Stores the recorded catalogs, and returns the names of the available ones.
fn stored(dir: &Path, scratch: &Path) -> Result<(Arc<Store>, Vec<&'static str>)> {
    let small = scratch.join("small");
    std::fs::create_dir(&small)?;
    std::fs::write(small.join("catalog.json"), SMALL)?;
    let store = Store::open(scratch.join("catalogs"))?;
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
    Ok((Arc::new(store), there))
}

/// Returns true if the path belongs to a missing catalog.
fn absent(path: &str, there: &[&str]) -> bool {
    ["medium", "synthetic"]
        .iter()
        .any(|name| !there.contains(name) && path.contains(&format!("/{name}/")))
}
