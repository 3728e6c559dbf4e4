//! A content server that requires tokens, and an operator-controller that sends one, as in
//! `config/overlays/private-catalogs`. Without the right to read, the status names the remedy; with it, the
//! extension is installed.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Client,
    api::{Api, DynamicObject},
};
use olm_e2e::{
    cluster::Cluster,
    conditions,
    content::{self, Keyword, Row},
    tokens,
};
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, ImageBuilder, OperatorController, Registry,
    controllers::SYSTEM_NAMESPACE, install_crds, tls, workspace,
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(90);

/// Binds the role in `config/` that allows reading all content to an account.
async fn grant_read(cluster: &Cluster, account: &str) -> Result<()> {
    let file = workspace::root().join("config/rbac/catalogd.yaml");
    let text = std::fs::read_to_string(file)?;
    let role = text
        .split("\n---\n")
        .filter_map(|document| serde_saphyr::from_str::<Value>(document).ok())
        .find(|object| object["kind"] == "ClusterRole" && object["metadata"]["name"] == tokens::READER)
        .context("no role for readers")?;
    cluster.apply(&role).await?;
    tokens::let_read(cluster, account).await
}

/// Creates a catalog with one small package, and an extension of the package.
async fn request_extension(cluster: &Cluster, registry: &Registry) -> Result<()> {
    let row = Row {
        package: "test".to_owned(),
        version: "1.0.0".to_owned(),
        channel: "alpha".to_owned(),
        replaces: String::new(),
        contents: Keyword::parse_list("ConfigMap")?,
    };
    let package = content::package_name("test", "private");
    let mut bundle = ImageBuilder::new();
    for (path, bytes) in content::bundle_files(&row, "private") {
        bundle = bundle.file(path, bytes);
    }
    let name = content::bundle_repository(&package, "1.0.0");
    bundle.push(registry, &name).await?;
    ImageBuilder::new()
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .file(
            "configs/catalog.json",
            content::catalog_file(&[row], "private", &registry.host()),
        )
        .push(registry, "private/catalog:v1")
        .await?;
    let reference = format!("{}/private/catalog:v1", registry.host());
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "private"}}),
        json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": "private"},
            "spec": {"source": {"type": "Image", "image": {"ref": reference}}},
        }),
        json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "private"},
            "spec": {
                "namespace": "private",
                "source": {"sourceType": "Catalog", "catalog": {"packageName": package}},
            },
        }),
    ] {
        cluster.apply(&object).await?;
    }
    Ok(())
}

/// Waits until a condition of the extension is true and its message contains all `parts`.
async fn condition(cluster: &Cluster, type_: &str, parts: &[&str]) -> Result<DynamicObject> {
    let what = parts.join(" and ");
    conditions::wait(
        cluster,
        "clusterextension/private",
        TIMEOUT,
        type_,
        &what,
        |_, found| found["status"] == "True" && parts.iter().all(|part| conditions::says(found, part)),
    )
    .await
}

/// Returns catalogd's status code for a request without a token.
async fn without_token(client: &Client, base: &str, path: &str) -> Result<u16> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let data = secrets.get("catalogd-service-own-cert").await?.data;
    let data = data.context("the Secret is empty")?;
    let ca = std::str::from_utf8(&data.get("ca.crt").context("no ca.crt")?.0)?;
    let answer = tls::http_client(Some(ca))?
        .get(format!("{base}{path}"))
        .send()
        .await?;
    Ok(answer.status().as_u16())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_from_a_private_catalog() -> Result<()> {
    let control_plane = ControlPlane::start().await?;
    let registry = Registry::start().await?;
    let client = control_plane.client();
    let cluster = Cluster::new(client.clone());
    install_crds(&client).await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("token");
    let options = |flag: String| ControllerOptions {
        args: vec![flag],
        ..ControllerOptions::default()
    };
    let flag = "--catalogs-server-require-token".to_owned();
    let catalogd = Catalogd::start_with(&control_plane, &registry, options(flag)).await?;
    std::fs::write(&file, tokens::for_catalogd(&cluster, "nobody").await?)?;
    let flag = format!("--catalogd-token-file={}", file.display());
    let _operator = OperatorController::start_with(&control_plane, &registry, options(flag)).await?;

    // An authenticated user without the right to read: the status has the problem and the remedy.
    request_extension(&cluster, &registry).await?;
    let head = "received unexpected response status code 403";
    let remedy = "bind ClusterRole catalogd-content-reader to it";
    condition(&cluster, "Progressing", &[head, remedy]).await?;
    let all = "/catalogs/private/api/v1/all";
    assert_eq!(without_token(&client, &catalogd.url(), all).await?, 401);

    // The token file is read again: with the token of an authorized user, the installation continues automatically.
    grant_read(&cluster, "reader").await?;
    std::fs::write(&file, tokens::for_catalogd(&cluster, "reader").await?)?;
    let installed = condition(&cluster, "Installed", &["Installed bundle"]).await?;
    // Without a signature policy, the status has a warning besides upstream's conditions.
    let status = &installed.data["status"];
    let warning = status["install"]["warning"].as_str().unwrap_or_default();
    if !std::path::Path::new("/etc/containers/policy.json").exists() {
        assert!(warning.contains("signatures are not verified"), "{status}");
    }
    assert_eq!(without_token(&client, &catalogd.url(), all).await?, 401);
    Ok(())
}
