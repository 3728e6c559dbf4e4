//! Readings for the diagnosis: the API server's clock, the kubelets' statistics.

use k8s_openapi::jiff::Timestamp;
use kube::client::Body;
use olm_api::names::Segment;
use serde_json::Value;

use super::call::call;
use super::cluster::Cluster;
use super::error::SourceError;

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
        call("reading a kubelet's statistics", self.client().request(request)).await
    }
}
