//! Authorization of content requests, reviewed by a real API server with real tokens.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::{Router, body::Body};
use http::Request;
use k8s_openapi::api::{
    authentication::v1::TokenRequest,
    core::v1::ServiceAccount,
    rbac::v1::{ClusterRole, ClusterRoleBinding},
};
use kube::{Api, Client, api::PostParams};
use olm_catalogd::{
    server::{AUDIENCE, Metrics, Options, router_with},
    storage::{Origin, Store, ValidCatalogName},
};
use olm_harness::{ControlPlane, workspace};
use olm_runtime::metrics::access::Access;
use serde_json::json;
use tower::ServiceExt;

const READER: &str = "catalogd-content-reader";

/// Reads the `ClusterRole` in `config/`.
fn reader() -> Result<ClusterRole> {
    let file = workspace::root().join("config/rbac/catalogd.yaml");
    let text = std::fs::read_to_string(file)?;
    text.split("\n---\n")
        .filter_map(|document| serde_saphyr::from_str::<ClusterRole>(document).ok())
        .find(|role| role.metadata.name.as_deref() == Some(READER))
        .context("no role for readers")
}

/// Creates a service account, bound to a role if one is given.
async fn account(client: &Client, name: &str, role: Option<&str>) -> Result<()> {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "default");
    let account = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    accounts.create(&PostParams::default(), &account).await?;
    if let Some(role) = role {
        let binding: ClusterRoleBinding = serde_json::from_value(json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        }))?;
        Api::all(client.clone())
            .create(&PostParams::default(), &binding)
            .await?;
    }
    Ok(())
}

async fn token(client: &Client, account: &str, audience: Option<&str>) -> Result<String> {
    let audiences: Vec<&str> = audience.into_iter().collect();
    let request: TokenRequest = serde_json::from_value(json!({"spec": {"audiences": audiences}}))?;
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), "default");
    let answer = accounts
        .create_token_request(account, &PostParams::default(), &request)
        .await?;
    let token = answer.status.and_then(|status| status.token);
    token.context("no token")
}

fn served(client: &Client, folder: &std::path::Path) -> Result<Router> {
    let source = folder.join("source");
    std::fs::create_dir(&source)?;
    std::fs::write(
        source.join("catalog.json"),
        "{\"schema\":\"olm.package\",\"name\":\"p\"}",
    )?;
    let store = Store::open(folder.join("catalogs"))?;
    for name in ["example", "other"] {
        let origin = Origin {
            requested: String::new(),
            resolved: String::new(),
            unpacked_at: 0,
            verified: None,
        };
        store.store(&ValidCatalogName::new(name)?, &source, origin, 0, &|| false)?;
    }
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    let options = Options {
        graphql: true,
        access: Some(Access::new(client.clone()).audience(AUDIENCE)),
    };
    Ok(router_with(Arc::new(store), metrics, &options))
}

async fn status(router: &Router, method: &str, path: &str, token: Option<&str>) -> Result<u16> {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = Body::from("{\"query\":\"{ summary { totalSchemas } }\"}");
    let answer = router.clone().oneshot(request.body(body)?).await?;
    if answer.status() == 401 {
        assert_eq!(answer.headers()["www-authenticate"], "Bearer");
    }
    Ok(answer.status().as_u16())
}

#[tokio::test(flavor = "multi_thread")]
async fn content_is_for_who_may_read_it() -> Result<()> {
    olm_runtime::tls::install_provider();
    let plane = ControlPlane::start().await?;
    let client = plane.client();
    let roles = Api::<ClusterRole>::all(client.clone());
    roles.create(&PostParams::default(), &reader()?).await?;
    let one: ClusterRole = serde_json::from_value(json!({
        "metadata": {"name": "reader-of-example"},
        "rules": [{"nonResourceURLs": ["/catalogs/example", "/catalogs/example/*"], "verbs": ["get"]}],
    }))?;
    roles.create(&PostParams::default(), &one).await?;
    account(&client, "reader", Some(READER)).await?;
    account(&client, "one", Some("reader-of-example")).await?;
    account(&client, "nobody", None).await?;
    let folder = tempfile::tempdir()?;
    let router = served(&client, folder.path())?;

    let reader = token(&client, "reader", Some(AUDIENCE)).await?;
    let (one, nobody) = (
        token(&client, "one", None).await?,
        token(&client, "nobody", None).await?,
    );
    let elsewhere = token(&client, "reader", Some("elsewhere")).await?;
    let (all, metas, graphql) = (
        "/catalogs/example/api/v1/all",
        "/catalogs/other/api/v1/metas?name=p",
        "/catalogs/example/api/v1/graphql",
    );
    for (method, path, token, expected) in [
        ("GET", all, None, 401),
        ("GET", "/nothing", None, 401),
        ("GET", all, Some("garbage"), 401),
        ("GET", all, Some(elsewhere.as_str()), 401),
        ("GET", all, Some(nobody.as_str()), 403),
        ("GET", "/catalogs", Some(nobody.as_str()), 403),
        ("GET", all, Some(reader.as_str()), 200),
        ("GET", all, Some(reader.as_str()), 200),
        ("HEAD", metas, Some(reader.as_str()), 200),
        ("GET", "/catalogs", Some(reader.as_str()), 200),
        ("GET", "/openapi.json", Some(reader.as_str()), 200),
        ("POST", graphql, Some(reader.as_str()), 200),
        ("GET", all, Some(one.as_str()), 200),
        ("GET", "/catalogs/example", Some(one.as_str()), 200),
        ("POST", graphql, Some(one.as_str()), 403),
        ("GET", metas, Some(one.as_str()), 403),
        ("GET", "/catalogs", Some(one.as_str()), 403),
        // Neither dot segments nor escapes lead from a permitted path to a forbidden one.
        (
            "GET",
            "/catalogs/example/../other/api/v1/all",
            Some(one.as_str()),
            307,
        ),
        (
            "GET",
            "/catalogs/example/%2e%2e/other/api/v1/all",
            Some(one.as_str()),
            404,
        ),
        (
            "GET",
            "/catalogs/example%2f..%2fother/api/v1/all",
            Some(one.as_str()),
            403,
        ),
        ("GET", "/catalogs/%6fther/api/v1/all", Some(one.as_str()), 403),
    ] {
        let found = status(&router, method, path, token).await?;
        assert_eq!(
            found,
            expected,
            "{method} {path} by {}",
            if token == Some(&one) { "one" } else { "another" }
        );
    }
    Ok(())
}
