//! Pull secrets in a cluster, read with the controllers' permissions.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::too_many_lines,
    reason = "tests may fail loudly"
)]

use std::fs;

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, Config,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use olm_harness::{ControlPlane, ImageBuilder, Registry, RegistryOptions, eventually};
use olm_image::{HostPolicy, ImageConfig, PullSecrets, Puller, watch_pull_secrets};
use olm_runtime::args::NamespacedName;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "pull-secrets";
const HTPASSWD: &str = "user:$2a$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

async fn apply(client: &Client, namespace: Option<&str>, object: Value) {
    let (version, kind) = (
        object["apiVersion"].as_str().unwrap(),
        object["kind"].as_str().unwrap(),
    );
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    api.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(&object))
        .await
        .unwrap();
}

fn secret(name: &str, key: &str, text: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {key: text.to_string()}})
}

fn account(secrets: &[&str]) -> Value {
    let references: Vec<_> = secrets.iter().map(|name| json!({"name": name})).collect();
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "controller"}, "imagePullSecrets": references})
}

#[tokio::test(flavor = "multi_thread")]
async fn pull_secrets_are_followed() {
    let (plane, registry) = tokio::join!(
        ControlPlane::start(),
        Registry::start_with(RegistryOptions {
            htpasswd: Some(HTPASSWD.to_owned()),
            ..RegistryOptions::default()
        })
    );
    let (plane, registry) = (plane.unwrap(), registry.unwrap());
    ImageBuilder::new()
        .file("a", "1")
        .auth("user", "secret")
        .push(&registry, "a/b:v1")
        .await
        .unwrap();
    let admin = plane.client();
    let name = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    apply(&admin, None, name(NAMESPACE)).await;
    apply(&admin, Some(NAMESPACE), account(&[])).await;
    // Permissions that config/rbac grants the controllers in their own namespace.
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "controller"},
        "rules": [{"apiGroups": [""], "resources": ["secrets", "serviceaccounts"], "verbs": ["get", "list", "watch"]}],
    });
    apply(&admin, Some(NAMESPACE), role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "controller"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "controller"},
        "subjects": [{"kind": "ServiceAccount", "name": "controller", "namespace": NAMESPACE}],
    });
    apply(&admin, Some(NAMESPACE), binding).await;

    let kubeconfig = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{NAMESPACE}:controller"));
    config.auth_info.impersonate_groups = Some(vec!["system:authenticated".to_owned()]);
    let client = Client::try_from(config).unwrap();

    let secrets = PullSecrets::unloaded();
    let global = NamespacedName {
        namespace: NAMESPACE.to_owned(),
        name: "global".to_owned(),
    };
    let shutdown = CancellationToken::new();
    let following = tokio::spawn(watch_pull_secrets(
        client,
        Some(global),
        secrets.clone(),
        shutdown.clone(),
    ));

    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("registries.conf"), "").unwrap();
    let puller = Puller::new(ImageConfig {
        plain_http: vec![registry.host()],
        registries_conf: Some(folder.path().join("registries.conf")),
        auth_file: Some(folder.path().join("none.json")),
        pull_secrets: secrets,
        hosts: HostPolicy::anywhere(),
        ..ImageConfig::new(folder.path())
    });
    let image = format!("{}/a/b:v1", registry.host()).parse().unwrap();
    let says = async |expected: &str| {
        let limit = std::time::Duration::from_secs(30);
        eventually(limit, expected, async || match puller.resolve(&image).await {
            Ok(_) if expected == "pulled" => Ok(()),
            Ok(_) => anyhow::bail!("pulled"),
            Err(error) if error.message().contains(expected) => Ok(()),
            Err(error) => anyhow::bail!(error.message()),
        })
        .await
        .unwrap();
    };
    says("pull secret pull-secrets/global does not exist").await;
    let entry = |password: &str| json!({registry.host(): {"username": "user", "password": password}});
    let config = |password: &str| json!({"auths": entry(password)});
    let known = ".dockerconfigjson";
    apply(
        &admin,
        Some(NAMESPACE),
        secret("global", known, &config("secret")),
    )
    .await;
    says("pulled").await;
    apply(&admin, Some(NAMESPACE), secret("global", known, &config("wrong"))).await;
    says("those of the pull secret are refused").await;
    // The account's own Secrets win, later ones over earlier ones.
    apply(&admin, Some(NAMESPACE), secret("first", known, &config("wrong"))).await;
    apply(
        &admin,
        Some(NAMESPACE),
        secret("second", ".dockercfg", &entry("secret")),
    )
    .await;
    apply(&admin, Some(NAMESPACE), account(&["first", "second"])).await;
    says("pulled").await;
    // An unreadable Secret changes nothing; a deleted one does.
    apply(
        &admin,
        Some(NAMESPACE),
        secret("first", known, &json!("no object")),
    )
    .await;
    says("pulled").await;
    Api::<Secret>::namespaced(admin.clone(), NAMESPACE)
        .delete("first", &DeleteParams::default())
        .await
        .unwrap();
    apply(&admin, Some(NAMESPACE), account(&[])).await;
    says("those of the pull secret are refused").await;
    shutdown.cancel();
    following.await.unwrap();
}
