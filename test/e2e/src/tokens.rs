//! Tokens of service accounts, and the right to read the content of catalogs.

use anyhow::{Context as _, Result};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use olm_harness::controllers::SYSTEM_NAMESPACE;
use serde_json::json;

use crate::cluster::Cluster;

/// Audience of the tokens that catalogd's content server accepts.
const CATALOGD: &str = "catalogd.olm.operatorframework.io";
/// Role in `config/` that allows reading the content of all catalogs.
pub const READER: &str = "catalogd-content-reader";

/// Returns a token of an account. Without audiences, the token is for the API server.
///
/// # Errors
/// The API server refuses the request.
pub async fn issue(accounts: &Api<ServiceAccount>, account: &str, audiences: &[&str]) -> Result<String> {
    let audiences = audiences.iter().map(|audience| (*audience).to_owned()).collect();
    let request = TokenRequest {
        spec: Some(TokenRequestSpec {
            audiences: Some(audiences),
            ..TokenRequestSpec::default()
        }),
        ..TokenRequest::default()
    };
    let params = PostParams::default();
    let issued = accounts.create_token_request(account, &params, &request).await?;
    issued.status.and_then(|status| status.token).context("no token")
}

/// Creates an account in catalogd's namespace, and returns a token of it for catalogd.
///
/// # Errors
/// As [`issue`].
pub async fn for_catalogd(cluster: &Cluster, account: &str) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client(), SYSTEM_NAMESPACE);
    let object = serde_json::from_value(json!({"metadata": {"name": account}}))?;
    accounts.create(&PostParams::default(), &object).await?;
    issue(&accounts, account, &[CATALOGD]).await
}

/// Allows an account in catalogd's namespace to read all content, by [`READER`].
///
/// # Errors
/// The API server refuses the binding.
pub async fn let_read(cluster: &Cluster, account: &str) -> Result<()> {
    cluster
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("{account}-of-catalogs")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READER},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}],
        }))
        .await
}
