//! Readings for the diagnosis and the support bundle: the API server's clock, the kubelets' statistics, logs, metrics.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::LogParams;
use kube::client::Body;
use olm_api::names::Segment;
use serde_json::Value;

use super::call::call;
use super::cluster::Cluster;
use super::error::SourceError;

/// Maximum size of a log, in bytes; the newest lines are read.
const LOG_BYTES: i64 = 8 << 20;
/// Maximum number of lines of a log.
const LOG_LINES: i64 = 50_000;

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

    /// Returns the end of a container's log, or of the log before its last restart.
    ///
    /// # Errors
    /// The log cannot be read.
    pub(crate) async fn log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        previous: bool,
    ) -> Result<String, SourceError> {
        let api: Api<Pod> = Api::namespaced(self.client().clone(), namespace);
        let params = LogParams {
            container: Some(container.to_owned()),
            previous,
            limit_bytes: Some(LOG_BYTES),
            tail_lines: Some(LOG_LINES),
            timestamps: true,
            ..LogParams::default()
        };
        call(
            &format!("reading the log of pod \"{pod}\""),
            api.logs(pod, &params),
        )
        .await
    }
}
