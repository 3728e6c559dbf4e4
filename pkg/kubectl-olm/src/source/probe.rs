//! Readings for the diagnosis and the support bundle: the API server's clock, the kubelets' statistics, logs, metrics.

use std::pin::pin;
use std::time::Duration;

use futures::AsyncReadExt as _;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::LogParams;
use kube::client::Body;
use olm_api::names::Segment;
use serde_json::Value;

use super::call::{call, within};
use super::cluster::Cluster;
use super::error::SourceError;
use super::tail::Tail;

/// Maximum size of a log, in bytes; the newest lines are kept.
pub(crate) const LOG_BYTES: usize = 8 << 20;
/// Maximum number of lines of a log; the newest are read.
pub(crate) const LOG_LINES: usize = 50_000;
/// Time limit for the lines of a log, which may be many times as long as what is kept.
const LOG_TIMEOUT: Duration = Duration::from_mins(2);

impl Cluster {
    /// Returns the time of the API server; none if its answer has no date.
    ///
    /// # Errors
    /// The API server does not answer.
    pub(crate) async fn server_time(&self) -> Result<Option<Timestamp>, SourceError> {
        let request = http::Request::get("/version").body(Body::empty());
        let request = request.map_err(|_| SourceError::Url {
            url: "/version".to_owned(),
        })?;
        let answer = call("reading the API server's clock", self.client().send(request)).await?;
        let date = answer.headers().get(http::header::DATE);
        let date = date.and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        Ok(date.and_then(|date| Timestamp::try_from(date).ok()))
    }

    /// Returns a kubelet's statistics of pods and volumes.
    ///
    /// # Errors
    /// The kubelet cannot be reached, or the user lacks the right to get `nodes/proxy`.
    pub(crate) async fn node_summary(&self, node: &str) -> Result<Value, SourceError> {
        let invalid = || SourceError::Url { url: node.to_owned() };
        let node = Segment::new(node).map_err(|_| invalid())?;
        let path = format!("/api/v1/nodes/{}/proxy/stats/summary", &*node);
        let request = http::Request::get(path).body(Vec::new()).map_err(|_| invalid())?;
        call(
            "reading a kubelet's statistics",
            self.proxy().once().request(request),
        )
        .await
    }

    /// Returns the answer of a proxied Service to a GET request as text.
    ///
    /// # Errors
    /// The API server refuses the request or does not answer.
    pub(crate) async fn text(&self, path: &str) -> Result<String, SourceError> {
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(|_| SourceError::Url { url: path.to_owned() })?;
        let answer = self.proxy().once().request_text(request);
        call(&format!("reading {path}"), answer).await
    }

    /// Returns the newest lines of a container's log, or of the log before its last restart.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) async fn log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        previous: bool,
    ) -> Result<Tail, SourceError> {
        let api: Api<Pod> = Api::namespaced(self.client().clone(), namespace);
        let params = LogParams {
            container: Some(container.to_owned()),
            previous,
            // Without limit_bytes: the kubelet counts them from the oldest of these lines.
            tail_lines: i64::try_from(LOG_LINES).ok(),
            timestamps: true,
            ..LogParams::default()
        };
        let work = async {
            let mut stream = pin!(api.log_stream(pod, &params).await?);
            let mut tail = Tail::new(LOG_BYTES, LOG_LINES);
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let count = stream.read(&mut buffer).await.map_err(kube::Error::ReadEvents)?;
                match buffer.get(..count) {
                    Some(bytes) if count > 0 => tail.push(bytes),
                    _ => return Ok(tail),
                }
            }
        };
        within(LOG_TIMEOUT, &format!("reading the log of pod \"{pod}\""), work).await
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::extract::Query;
    use std::collections::BTreeMap;

    use super::super::stand_in::serve;

    /// The server cuts at the end, as a kubelet does with `limitBytes`.
    #[tokio::test]
    async fn the_newest_lines_of_a_long_log_are_kept() {
        let lines = |number: usize| format!("{number} {}\n", "x".repeat(4096));
        let log: String = (0..3000).map(lines).collect();
        let router = Router::new().route(
            "/api/v1/namespaces/n/pods/p/log",
            axum::routing::get(async move |Query(query): Query<BTreeMap<String, String>>| {
                let limit = query.get("limitBytes").and_then(|limit| limit.parse().ok());
                log.chars().take(limit.unwrap_or(usize::MAX)).collect::<String>()
            }),
        );
        let cluster = serve(router).await;
        let (text, whole) = cluster.log("n", "p", "c", false).await.unwrap().finish();
        assert!(text.ends_with(&lines(2999)), "the newest line is missing");
        assert!(!whole && text.len() <= super::LOG_BYTES && text.len() > super::LOG_BYTES - 2 * 4096);
    }
}
