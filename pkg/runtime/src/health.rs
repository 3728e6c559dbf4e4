//! `/healthz` and `/readyz` over plain HTTP, with the answers of controller-runtime.
//!
//! `/healthz` is always ok. `/readyz` runs all named checks; `?verbose` lists them, `?exclude=NAME` skips one, and
//! `/readyz/NAME` runs a single one.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use axum::{
    Router,
    extract::{Path, RawQuery, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use crate::{
    address::BindAddress,
    serve::{self, ServeError},
};

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Readiness checks of a process. Clones share them.
#[derive(Clone, Default)]
pub struct Health(Arc<RwLock<BTreeMap<String, Check>>>);

impl Health {
    /// Returns an empty set of checks: the process is ready as soon as it serves.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a readiness check. The check must not block.
    pub fn ready_check(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.0.write().insert(name.into(), Arc::new(check));
    }

    /// Adds a readiness check that fails with `until` until the returned flag is set.
    #[must_use]
    pub fn ready_flag(&self, name: impl Into<String>, until: impl Into<String>) -> ReadyFlag {
        let flag = ReadyFlag(Arc::new(RwLock::new(Err(until.into()))));
        let state = flag.0.clone();
        self.ready_check(name, move || state.read().clone());
        flag
    }

    /// Adds a readiness check that fails from the moment `stopping` is cancelled.
    pub fn ready_until(&self, name: impl Into<String>, stopping: &CancellationToken) {
        let stopping = stopping.clone();
        self.ready_check(name, move || {
            if stopping.is_cancelled() {
                Err("the process is stopping".to_owned())
            } else {
                Ok(())
            }
        });
    }

    /// Returns the routes, for tests and for servers with further routes.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/healthz", get(healthz))
            .route("/healthz/", get(healthz))
            .route("/healthz/ping", get(ping))
            .route("/readyz", get(readyz))
            .route("/readyz/", get(readyz))
            .route("/readyz/{name}", get(readyz_one))
            .with_state(self.clone())
    }

    fn checks(&self) -> Vec<(String, Check)> {
        let ping: Check = Arc::new(|| Ok(()));
        std::iter::once(("ping".to_owned(), ping))
            .chain(
                self.0
                    .read()
                    .iter()
                    .map(|(name, check)| (name.clone(), check.clone())),
            )
            .collect()
    }
}

/// A readiness check that is set through this flag.
#[derive(Clone, Debug)]
pub struct ReadyFlag(Arc<RwLock<Result<(), String>>>);

impl ReadyFlag {
    /// Reports the process as ready from now on.
    pub fn set_ready(&self) {
        *self.0.write() = Ok(());
    }
}

async fn ping() -> Response {
    plain(StatusCode::OK, "ok".to_owned())
}

async fn healthz(RawQuery(query): RawQuery) -> Response {
    let ping: Check = Arc::new(|| Ok(()));
    report("healthz", vec![("ping".to_owned(), ping)], query.as_deref())
}

async fn readyz(State(health): State<Health>, RawQuery(query): RawQuery) -> Response {
    report("readyz", health.checks(), query.as_deref())
}

async fn readyz_one(State(health): State<Health>, Path(wanted): Path<String>) -> Response {
    match health.checks().into_iter().find(|(name, _)| *name == wanted) {
        None => plain(StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
        Some((_, check)) => match check() {
            Ok(()) => plain(StatusCode::OK, "ok".to_owned()),
            Err(reason) => plain(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("internal server error: {reason}\n"),
            ),
        },
    }
}

fn report(endpoint: &str, checks: Vec<(String, Check)>, query: Option<&str>) -> Response {
    let parameters: Vec<_> = query
        .unwrap_or_default()
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    let verbose = parameters.iter().any(|(key, _)| *key == "verbose");
    let excluded = |name: &str| parameters.contains(&("exclude", name));
    let mut lines = String::new();
    let mut failed = false;
    for (name, check) in checks {
        if excluded(&name) {
            let _ = writeln!(lines, "[+]{name} excluded: ok");
            continue;
        }
        match check() {
            Ok(()) => {
                let _ = writeln!(lines, "[+]{name} ok");
            }
            Err(reason) => {
                failed = true;
                tracing::debug!(check = name, reason, "probe check failed");
                let _ = writeln!(lines, "[-]{name} failed: reason withheld");
            }
        }
    }
    if failed {
        let _ = writeln!(lines, "{endpoint} check failed");
        return plain(StatusCode::INTERNAL_SERVER_ERROR, lines);
    }
    if verbose {
        let _ = writeln!(lines, "{endpoint} check passed");
        return plain(StatusCode::OK, lines);
    }
    plain(StatusCode::OK, "ok".to_owned())
}

fn plain(status: StatusCode, body: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, body).into_response()
}

/// Serves the probes until the token is cancelled; returns at once if the address is off.
///
/// # Errors
/// The server cannot listen on the address, or it fails.
pub async fn serve(
    address: BindAddress,
    health: Health,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    serve::plain("health probes", address, health.router(), shutdown).await
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use tower::ServiceExt;

    use super::*;

    async fn request(health: &Health, uri: &str) -> (u16, String) {
        let probe = http::Request::get(uri).body(Body::empty()).unwrap();
        let response = health.router().oneshot(probe).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 4096).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn ready_only_when_every_check_is() {
        let health = Health::new();
        assert_eq!(request(&health, "/healthz").await, (200, "ok".to_owned()));
        assert_eq!(request(&health, "/readyz").await, (200, "ok".to_owned()));
        let flag = health.ready_flag("catalog-server", "catalog server not yet started");
        let (status, body) = request(&health, "/readyz").await;
        assert_eq!(status, 500);
        assert_eq!(
            body,
            "[+]ping ok\n[-]catalog-server failed: reason withheld\nreadyz check failed\n"
        );
        let (status, body) = request(&health, "/readyz/catalog-server").await;
        assert_eq!(
            (status, body.as_str()),
            (500, "internal server error: catalog server not yet started\n")
        );
        assert_eq!(request(&health, "/readyz?exclude=catalog-server").await.0, 200);
        assert_eq!(request(&health, "/healthz").await.0, 200);
        flag.set_ready();
        let (status, body) = request(&health, "/readyz?verbose").await;
        assert_eq!(
            (status, body.as_str()),
            (200, "[+]ping ok\n[+]catalog-server ok\nreadyz check passed\n")
        );
        assert_eq!(request(&health, "/readyz/nothing").await.0, 404);
    }

    #[tokio::test]
    async fn stopping_processes_are_healthy_and_not_ready() {
        let (health, stopping) = (Health::new(), CancellationToken::new());
        health.ready_until("shutdown", &stopping);
        assert_eq!(request(&health, "/readyz").await.0, 200);
        stopping.cancel();
        assert_eq!(request(&health, "/readyz").await.0, 500);
        let (_, reason) = request(&health, "/readyz/shutdown").await;
        assert!(reason.contains("the process is stopping"), "{reason}");
        assert_eq!(request(&health, "/healthz").await.0, 200);
    }
}
