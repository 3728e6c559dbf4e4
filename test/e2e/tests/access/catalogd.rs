//! Life cycle of catalogd with the rights of `config/rbac/catalogd.yaml`: all are sufficient, and all are used.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, DeleteParams};
use olm_e2e::cluster::Cluster;
use olm_e2e::conditions;
use olm_e2e::rbac::{grants, lease_of_dead_leader, refused, requests, unused};
use olm_e2e::tokens;
use olm_harness::controllers::SYSTEM_NAMESPACE;
use olm_harness::ports::Port;
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, ImageBuilder, Registry, eventually, install_crds, tls,
};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_mins(1);
const ACCOUNT: &str = "catalogd-controller-manager";
const USER: &str = "system:serviceaccount:olmv1-system:catalogd-controller-manager";
const CERTIFICATE: &str = "secret/catalogd-service-own-cert";

#[tokio::test(flavor = "multi_thread")]
async fn catalogd_uses_all_its_rights_and_needs_no_others() -> Result<()> {
    let control_plane = ControlPlane::start_audited().await?;
    let registry = Registry::start().await?;
    let client = control_plane.client();
    let cluster = Cluster::new(client.clone());
    install_crds(&client).await?;
    cluster
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}))
        .await?;
    let rbac = cluster.apply_file("config/rbac/catalogd.yaml", &[]).await?;
    pull_secret(&cluster).await?;
    let image = ImageBuilder::new()
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .file(
            "configs/catalog.json",
            json!({"schema": "olm.package", "name": "p"}).to_string(),
        );
    image.push(&registry, "rights/catalog:v1").await?;

    cluster
        .apply(&lease_of_dead_leader("catalogd-operator-lock"))
        .await?;
    let metrics = Port::reserve()?;
    let cache = tempfile::tempdir()?;
    let options = ControllerOptions {
        args: vec![
            "--leader-elect".to_owned(),
            format!("--metrics-bind-address={}", metrics.address()),
        ],
        kubeconfig: Some(control_plane.kubeconfig_for(USER, None)?),
        cache: Some(cache.path().to_owned()),
        ..ControllerOptions::default()
    };
    let mut catalogd = Catalogd::start_with(&control_plane, &registry, options).await?;

    // The reason of a condition changes back and forth: the second event joins the first.
    let good = format!("{}/rights/catalog:v1", registry.host());
    let absent = format!("{}/rights/catalog:absent", registry.host());
    for reference in [&good, &absent, &good, &absent, &good] {
        catalog(&cluster, "stays", reference).await?;
        serving(&cluster, "stays", "Progressing", *reference == good).await?;
    }
    catalog(&cluster, "goes", &good).await?;
    serving(&cluster, "goes", "Serving", true).await?;
    scrape(&client, &metrics).await?;

    // While catalogd is stopped, the test corrupts its certificate and deletes a catalog whose content is on disk.
    catalogd.controller().stop();
    let corrupted = json!({"data": {"tls.crt": "AAAA"}});
    cluster.merge(CERTIFICATE, SYSTEM_NAMESPACE, &corrupted).await?;
    let without_finalizers = json!({"metadata": {"finalizers": null}});
    cluster
        .merge("clustercatalog/goes", "", &without_finalizers)
        .await?;
    let (api, name) = cluster.lookup("clustercatalog/goes", "").await?;
    api.delete(&name, &DeleteParams::default()).await?;
    // Several components remove the content; only the collector removes the unpacked image.
    std::fs::create_dir_all(cache.path().join("unpack/left-behind"))?;
    catalogd.controller().restart().await?;
    let lease = "leases.coordination.k8s.io/catalogd-operator-lock";
    eventually(TIMEOUT, "catalogd leads again", async || {
        let lease = cluster.get(lease, SYSTEM_NAMESPACE).await?.context("no lease")?;
        let holder = lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default();
        ensure!(!holder.is_empty(), "the lease is free");
        Ok(())
    })
    .await?;
    // The leader creates it again.
    let (api, name) = cluster.lookup(lease, SYSTEM_NAMESPACE).await?;
    api.delete(&name, &DeleteParams::default()).await?;

    let grants = grants(&rbac, ACCOUNT);
    ensure!(grants.len() > 15, "rights are not read: {grants:?}");
    let log = control_plane.audit_log();
    let used = eventually(TIMEOUT, "every right to be used", async || {
        let used = requests(&log, USER)?;
        let superfluous = unused(&grants, &used);
        ensure!(superfluous.is_empty(), "superfluous: {superfluous:#?}");
        Ok(used)
    })
    .await?;
    let missing = refused(&used);
    ensure!(missing.is_empty(), "missing: {missing:#?}");
    Ok(())
}

/// Creates a pull secret that catalogd finds through its service account.
async fn pull_secret(cluster: &Cluster) -> Result<()> {
    for object in [
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "registry", "namespace": SYSTEM_NAMESPACE},
            "stringData": {".dockerconfigjson": "{\"auths\":{}}"},
        }),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": SYSTEM_NAMESPACE},
            "imagePullSecrets": [{"name": "registry"}],
        }),
    ] {
        cluster.apply(&object).await?;
    }
    Ok(())
}

async fn catalog(cluster: &Cluster, name: &str, reference: &str) -> Result<()> {
    cluster
        .apply(&json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": name},
            "spec": {"source": {"type": "Image", "image": {"ref": reference}}},
        }))
        .await
}

/// Waits until a condition reports success or failure for the newest spec.
async fn serving(cluster: &Cluster, name: &str, condition: &str, success: bool) -> Result<()> {
    let reference = format!("clustercatalog/{name}");
    let what = format!("success: {success}");
    conditions::wait(cluster, &reference, TIMEOUT, condition, &what, |object, found| {
        let reason = found["reason"].as_str().unwrap_or_default();
        found["observedGeneration"] == json!(object.metadata.generation)
            && matches!(reason, "Succeeded" | "Available") == success
    })
    .await?;
    Ok(())
}

/// Requests metrics with a token that has no right to read them.
async fn scrape(client: &Client, metrics: &Port) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let token = tokens::issue(&accounts, ACCOUNT, &[]).await?;
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let data = secrets.get("catalogd-service-own-cert").await?.data;
    let ca = data
        .and_then(|mut data| data.remove("ca.crt"))
        .context("no ca.crt")?;
    let answer = tls::http_client(Some(std::str::from_utf8(&ca.0)?))?
        .get(format!("https://localhost:{}/metrics", metrics.number()))
        .bearer_auth(token)
        .send()
        .await?;
    ensure!(answer.status() == 403, "{}", answer.status());
    Ok(())
}
