//! Reader of operator-controller's metrics over HTTPS and with a token, as Prometheus reads them.

use anyhow::Result;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::PostParams;
use kube::{Api, Client};
use olm_harness::pki::Authority;
use olm_harness::ports::Port;
use olm_harness::scratch::Scratch;
use olm_harness::tls;
use serde_json::json;

use crate::tokens;

/// A reserved port for the metrics of a controller, and its certificate.
pub struct MetricsPort {
    port: Port,
    authority: Authority,
    folder: Scratch,
}

impl MetricsPort {
    /// Reserves a port and creates its certificate.
    pub fn reserve() -> Result<Self> {
        let authority = Authority::new("metrics")?;
        let pair = authority.server(&["localhost", "127.0.0.1"])?;
        let folder = Scratch::new("metrics")?;
        std::fs::write(folder.path().join("tls.crt"), &pair.certificate)?;
        std::fs::write(folder.path().join("tls.key"), &pair.key)?;
        Ok(Self {
            port: Port::reserve()?,
            authority,
            folder,
        })
    }

    /// Returns the arguments with which the controller serves its metrics here.
    pub fn args(&self) -> Vec<String> {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        vec![
            format!("--tls-cert={}", file("tls.crt")),
            format!("--tls-key={}", file("tls.key")),
            format!("--metrics-bind-address={}", self.port.address()),
        ]
    }

    /// Returns a reader with the rights of a new account, `default/reader`.
    pub async fn reader(self, client: &Client) -> Result<MetricsReader> {
        Ok(MetricsReader {
            address: format!("https://{}/metrics", self.port.address()),
            ca: self.authority.pem(),
            token: token(client).await?,
            _port: self,
        })
    }
}

/// Reads the metrics of a controller.
pub struct MetricsReader {
    address: String,
    token: String,
    ca: String,
    _port: MetricsPort,
}

impl MetricsReader {
    /// Returns the metrics as text.
    pub async fn read(&self) -> Result<String> {
        let client = tls::http_client(Some(&self.ca))?;
        let answer = client.get(&self.address).bearer_auth(&self.token).send().await?;
        Ok(answer.error_for_status()?.text().await?)
    }
}

/// Returns a token of an account that may read metrics.
async fn token(client: &Client) -> Result<String> {
    let reader = json!({"metadata": {"name": "reader"}});
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let create = PostParams::default();
    accounts.create(&create, &serde_json::from_value(reader)?).await?;
    let role: ClusterRole = serde_json::from_value(json!({"metadata": {"name": "reader"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}))?;
    Api::all(client.clone()).create(&create, &role).await?;
    let binding: ClusterRoleBinding = serde_json::from_value(json!({"metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]}))?;
    Api::all(client.clone()).create(&create, &binding).await?;
    tokens::issue(&accounts, "reader", &[]).await
}
