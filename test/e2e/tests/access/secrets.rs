//! No content of a Secret is in a log, an event or a status: passwords of registries, tokens, private keys, and the Secrets of bundles.
//! Both controllers log everything that `--log-level=trace` permits.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams};
use olm_e2e::cluster::Cluster;
use olm_e2e::conditions;
use olm_e2e::content::{self, Row};
use olm_e2e::tokens;
use olm_harness::controllers::SYSTEM_NAMESPACE;
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, ImageBuilder, OperatorController, Registry, RegistryOptions,
    eventually, install_crds,
};
use serde_json::{Value, json};

const TIMEOUT: Duration = Duration::from_secs(90);
const USER: &str = "user";
const PASSWORD: &str = "password-of-the-registry";
const WRONG_PASSWORD: &str = "mistyped-password-of-the-registry";
/// [`USER`] and the bcrypt hash of [`PASSWORD`].
const HTPASSWD: &str = "user:$2b$05$RTMIk5YANfo8vFPyVVm3pOPjXCh.5onWe/dm6qoMKvCg2lHR2cL.C";
const IN_BUNDLE: [(&str, &str); 2] = [
    ("1.0.0", "first-password-in-the-bundle"),
    ("1.1.0", "second-password-in-the-bundle"),
];
/// Password in a third version, where the API server refuses it: a number instead of a string.
const NUMBER: u64 = 271_828_182_845_904;
const OF_OTHERS: &str = "password-of-somebody-else";
/// Minimum length of a line that is searched for. Shorter ones occur by chance.
const MIN_LENGTH: usize = 12;

/// Contents of Secrets that have existed, as text and in base64.
#[derive(Default)]
struct Contents(BTreeSet<String>);

impl Contents {
    fn add(&mut self, text: &str) {
        self.0.insert(text.to_owned());
        self.0.insert(STANDARD.encode(text));
    }

    /// Adds every line of every Secret in the cluster, apart from the certificates of CAs, which are public.
    async fn collect(&mut self, cluster: &Cluster) -> Result<()> {
        let secrets: Api<Secret> = Api::all(cluster.client());
        for secret in secrets.list(&ListParams::default()).await? {
            for (key, value) in secret.data.unwrap_or_default() {
                if key == "ca.crt" {
                    continue;
                }
                self.0.insert(STANDARD.encode(&value.0));
                let text = String::from_utf8_lossy(&value.0);
                let lines = text.lines().filter(|line| !line.starts_with("-----"));
                self.0.extend(lines.map(str::to_owned));
            }
        }
        self.0.retain(|text| text.len() >= MIN_LENGTH);
        Ok(())
    }

    /// Returns the contents that are in `text`.
    fn found_in<'a>(&'a self, text: &str) -> Vec<&'a str> {
        let all = self.0.iter().map(String::as_str);
        all.filter(|content| text.contains(content)).collect()
    }
}

/// Writes the pull secret that `--global-pull-secret` names.
async fn pull_secret(cluster: &Cluster, registry: &Registry, password: &str) -> Result<()> {
    let auth = STANDARD.encode(format!("{USER}:{password}"));
    let config = json!({"auths": {registry.host(): {"auth": auth}}}).to_string();
    cluster
        .apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "registry", "namespace": SYSTEM_NAMESPACE},
            "stringData": {".dockerconfigjson": config},
        }))
        .await
}

/// Pushes a catalog of one package, and its bundles with one Secret each. Returns the name of the package.
async fn push(registry: &Registry) -> Result<String> {
    let package = content::package_name("test", "secrets");
    let mut rows = Vec::new();
    let mut replaces = "";
    let passwords = IN_BUNDLE.map(|(version, password)| (version, json!(password)));
    for (version, password) in passwords.into_iter().chain([("1.2.0", json!(NUMBER))]) {
        let row = Row {
            package: "test".to_owned(),
            version: version.to_owned(),
            channel: "alpha".to_owned(),
            replaces: replaces.to_owned(),
            contents: Vec::new(),
        };
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bundled"},
            "stringData": {"password": password},
        });
        let mut bundle = ImageBuilder::new()
            .auth(USER, PASSWORD)
            .file("manifests/secret.yaml", secret.to_string());
        for (path, bytes) in content::bundle_files(&row, "secrets") {
            bundle = bundle.file(path, bytes);
        }
        bundle
            .push(registry, &content::bundle_repository(&package, version))
            .await?;
        rows.push(row);
        replaces = version;
    }
    ImageBuilder::new()
        .auth(USER, PASSWORD)
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .file(
            "configs/catalog.json",
            content::catalog_file(&rows, "secrets", &registry.host()),
        )
        .push(registry, "secrets/catalog:v1")
        .await?;
    Ok(package)
}

/// Requests a version of the package.
async fn extension(cluster: &Cluster, package: &str, version: &str) -> Result<()> {
    cluster
        .apply(&json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
            "metadata": {"name": "secrets"},
            "spec": {
                "namespace": "secrets",
                "source": {"sourceType": "Catalog", "catalog": {"packageName": package, "version": version}},
            },
        }))
        .await
}

/// Waits for a condition whose message contains `part`.
async fn condition(cluster: &Cluster, reference: &str, type_: &str, part: &str) -> Result<()> {
    conditions::wait(cluster, reference, TIMEOUT, type_, part, |_, found| {
        conditions::says(found, part)
    })
    .await?;
    Ok(())
}

/// Waits until the Secret of the bundle has this password.
async fn bundled(cluster: &Cluster, password: &str) -> Result<()> {
    eventually(TIMEOUT, "the password in the bundle's Secret", async || {
        let secret = cluster
            .get("secret/bundled", "secrets")
            .await?
            .context("it does not exist")?;
        let value = &secret.data["data"]["password"];
        ensure!(value == &json!(STANDARD.encode(password)), "{value}");
        Ok(())
    })
    .await
}

/// Returns the recorded writes of the objects that users read: catalogs, extensions, revisions and events.
fn readable_writes(log: &Path) -> Result<String> {
    let log = std::fs::read_to_string(log)?;
    let mut writes = String::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line)?;
        let resource = event["objectRef"]["resource"].as_str().unwrap_or_default();
        if resource == "events" || event["objectRef"]["apiGroup"] == "olm.operatorframework.io" {
            writes.push_str(line);
            writes.push('\n');
        }
    }
    Ok(writes)
}

/// Walks through an installation with a mistyped password first, a collision, an upgrade, a repair, an upgrade that the API server
/// refuses, and the removal. Collects the Secrets on the way.
async fn lifecycle(cluster: &Cluster, registry: &Registry, contents: &mut Contents) -> Result<()> {
    let package = push(registry).await?;
    let reference = format!("{}/secrets/catalog:v1", registry.host());
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "secrets"}}),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bundled", "namespace": "secrets"},
            "stringData": {"password": OF_OTHERS},
        }),
        json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": "secrets"},
            "spec": {"source": {"type": "Image", "image": {"ref": reference}}},
        }),
    ] {
        cluster.apply(&object).await?;
    }
    condition(cluster, "clustercatalog/secrets", "Progressing", "are refused").await?;
    contents.collect(cluster).await?;
    pull_secret(cluster, registry, PASSWORD).await?;
    condition(cluster, "clustercatalog/secrets", "Serving", "Serving").await?;

    let reference = "clusterextension/secrets";
    extension(cluster, &package, "1.0.0").await?;
    condition(cluster, reference, "Progressing", "bundled").await?;
    contents.collect(cluster).await?;
    let (api, name) = cluster.lookup("secret/bundled", "secrets").await?;
    api.delete(&name, &DeleteParams::default()).await?;
    condition(cluster, reference, "Installed", "v1.0.0").await?;
    contents.collect(cluster).await?;
    extension(cluster, &package, "1.1.0").await?;
    condition(cluster, reference, "Installed", "v1.1.0").await?;
    contents.collect(cluster).await?;
    let changed = json!({"stringData": {"password": OF_OTHERS}});
    cluster.merge("secret/bundled", "secrets", &changed).await?;
    bundled(cluster, IN_BUNDLE[1].1).await?;
    extension(cluster, &package, "1.2.0").await?;
    let refused = ".stringData.password: expected string, got another type";
    condition(cluster, reference, "Progressing", refused).await?;

    let (api, name) = cluster.lookup(reference, "").await?;
    api.delete(&name, &DeleteParams::default()).await?;
    eventually(TIMEOUT, "the extension to be removed", async || {
        ensure!(cluster.get(reference, "").await?.is_none(), "it exists");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_log_event_or_status_has_the_content_of_a_secret() -> Result<()> {
    let control_plane = ControlPlane::start_recorded().await?;
    let registry = Registry::start_with(RegistryOptions {
        htpasswd: Some(HTPASSWD.to_owned()),
        ..RegistryOptions::default()
    })
    .await?;
    let cluster = Cluster::new(control_plane.client());
    install_crds(&control_plane.client()).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}});
    cluster.apply(&namespace).await?;
    cluster.apply_file("config/rbac/catalogd.yaml", &[]).await?;
    pull_secret(&cluster, &registry, WRONG_PASSWORD).await?;
    let folder = tempfile::tempdir()?;
    let token_file = folder.path().join("token");
    let token = tokens::for_catalogd(&cluster, "reader").await?;
    tokens::let_read(&cluster, "reader").await?;
    std::fs::write(&token_file, &token)?;
    let options = |flag: String| ControllerOptions {
        args: vec![
            flag,
            "--log-level=trace".to_owned(),
            format!("--global-pull-secret={SYSTEM_NAMESPACE}/registry"),
        ],
        ..ControllerOptions::default()
    };
    let flag = "--catalogs-server-require-token".to_owned();
    let mut catalogd = Catalogd::start_with(&control_plane, &registry, options(flag)).await?;
    let flag = format!("--catalogd-token-file={}", token_file.display());
    let mut operator = OperatorController::start_with(&control_plane, &registry, options(flag)).await?;

    let mut contents = Contents::default();
    for text in [
        PASSWORD,
        WRONG_PASSWORD,
        OF_OTHERS,
        IN_BUNDLE[0].1,
        IN_BUNDLE[1].1,
        &token,
    ] {
        contents.add(text);
    }
    contents.add(&NUMBER.to_string());
    for password in [PASSWORD, WRONG_PASSWORD] {
        contents.add(&format!("{USER}:{password}"));
    }
    lifecycle(&cluster, &registry, &mut contents).await?;

    for log in [catalogd.controller().log(), operator.controller().log()] {
        let text = std::fs::read_to_string(&log)?;
        ensure!(
            text.contains("TRACE") && text.contains("secrets"),
            "{} is incomplete",
            log.display()
        );
        assert_eq!(contents.found_in(&text), [""; 0], "{}", log.display());
    }
    let writes = readable_writes(&control_plane.audit_log())?;
    for kind in ["ClusterCatalog", "ClusterExtension", "ClusterObjectSet", "Event"] {
        ensure!(
            writes.contains(&format!("\"kind\":\"{kind}\"")),
            "no {kind} was written"
        );
    }
    assert_eq!(contents.found_in(&writes), [""; 0], "in {writes}");
    Ok(())
}
