//! Cluster for tests: an API server with a few answers, on loopback.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Json};
use axum::routing::get;
use kube::{Client, Config};
use olm_api::{ClusterObjectSet, keys};
use olm_fbc::{Meta, PackageContent};
use olm_resolve::{CatalogInput, CatalogLookup};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::cluster::{Cluster, Content};
use super::proxy::Proxy;

/// Starts an API server that answers these paths, each with a status code and an object; all other paths are absent.
pub(crate) async fn cluster(answers: &[(&str, u16, Value)]) -> Cluster {
    serve(answering(answers)).await
}

fn answering(answers: &[(&str, u16, Value)]) -> Router {
    let answers: BTreeMap<String, (u16, Value)> = answers
        .iter()
        .map(|(path, code, object)| ((*path).to_owned(), (*code, object.clone())))
        .collect();
    Router::new().fallback(async move |uri: Uri| {
        let absent = (404, failure(404, "not found"));
        let (code, object) = answers.get(uri.path()).cloned().unwrap_or(absent);
        (StatusCode::from_u16(code).unwrap(), Json(object)).into_response()
    })
}

/// Starts an API server that answers by `router`.
pub(crate) async fn serve(router: Router) -> Cluster {
    olm_runtime::tls::install_provider();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let config = Config::new(format!("http://{address}").parse().unwrap());
    let client = Client::try_from(config.clone()).unwrap();
    let proxy = Proxy::new(client.clone(), config, "olmv1-system".to_owned()).unwrap();
    Cluster::new(client, proxy, "olmv1-system".to_owned(), Content::OfUser(None))
}

/// Returns the API server's answer to a request that fails.
pub(crate) fn failure(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code})
}

/// Returns the discovery of a group version with one kind.
pub(crate) fn resources(group_version: &str, kind: &str, plural: &str, namespaced: bool) -> Value {
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": [
        {"name": plural, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": ["get", "patch"]}]})
}

/// Returns a revision of extension kite.
pub(crate) fn revision(number: i64, version: &str, succeeded: bool) -> ClusterObjectSet {
    let status = if succeeded { "True" } else { "False" };
    serde_json::from_value(json!({
        "metadata": {"name": format!("kite-{number}"), "labels": {keys::OWNER_NAME_LABEL: "kite"}, "annotations": {
            keys::BUNDLE_NAME_ANNOTATION: format!("kite.v{version}"), keys::BUNDLE_VERSION_ANNOTATION: version,
            keys::PACKAGE_NAME_ANNOTATION: "kite", keys::BUNDLE_REFERENCE_ANNOTATION: "r.example/kite",
            keys::CATALOG_NAME_ANNOTATION: "sky"}},
        "spec": {"lifecycleState": "Active", "revision": number, "collisionProtection": "Prevent"},
        "status": {"conditions": [{"type": "Succeeded", "status": status, "reason": "Succeeded", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    }))
    .unwrap()
}

/// Returns catalog sky with the package of [`metas`].
pub(crate) fn catalog(bundles: &[(&str, Vec<Value>)]) -> CatalogInput {
    let metas = metas(bundles).into_iter().map(|value| {
        let field = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Meta {
            schema: field("schema"),
            package: field("package"),
            name: field("name"),
            blob: format!("{value}\n").into_bytes(),
        }
    });
    let content = PackageContent::from_metas("kite", metas).unwrap();
    CatalogInput {
        name: "sky".into(),
        priority: 0,
        lookup: CatalogLookup::Found(Arc::new(content)),
    }
}

/// Returns package kite with bundles of these versions, which have these properties besides. Each replaces the one before.
pub(crate) fn metas(bundles: &[(&str, Vec<Value>)]) -> Vec<Value> {
    let mut metas = vec![json!({"schema": "olm.package", "name": "kite", "defaultChannel": "a"})];
    let mut entries: Vec<Value> = Vec::new();
    for (version, more) in bundles {
        let name = format!("kite.v{version}");
        let mut entry = json!({"name": name});
        if let Some(before) = entries.last() {
            entry["replaces"] = before["name"].clone();
        }
        entries.push(entry);
        let package = json!({"type": "olm.package", "value": {"packageName": "kite", "version": version}});
        let properties: Vec<&Value> = std::iter::once(&package).chain(more).collect();
        metas.push(
            json!({"schema": "olm.bundle", "package": "kite", "name": name, "image": "r.example/kite",
            "properties": properties}),
        );
    }
    metas.push(json!({"schema": "olm.channel", "package": "kite", "name": "a", "entries": entries}));
    metas
}

/// Starts an API server with extension kite, which has these revisions, and with catalog sky of these metas, which its proxy serves.
pub(crate) async fn with_catalog(revisions: &[ClusterObjectSet], metas: &[Value]) -> Cluster {
    let extension = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "kite"},
        "spec": {"namespace": "sky", "source": {"sourceType": "Catalog", "catalog": {"packageName": "kite"}}}});
    let service = "https://catalogd-service.olmv1-system.svc";
    let catalog = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "sky"},
        "spec": {"source": {"type": "Image", "image": {"ref": "r.example/sky:v1"}}},
        "status": {"urls": {"base": format!("{service}/catalogs/sky")},
            "resolvedSource": {"type": "Image", "image": {"ref": "r.example/sky@sha256:ab"}},
            "conditions": [{"type": "Serving", "status": "True", "reason": "Available", "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let list = |items: Value| json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items});
    let base = "/apis/olm.operatorframework.io/v1";
    let router = answering(&[
        ("/version", 200, version()),
        (
            &format!("{base}/clusterextensions"),
            200,
            list(json!([extension])),
        ),
        (&format!("{base}/clustercatalogs"), 200, list(json!([catalog]))),
        (&format!("{base}/clusterobjectsets"), 200, list(json!(revisions))),
    ]);
    let proxy = "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy";
    let content: Vec<String> = metas.iter().map(Value::to_string).collect();
    let content = content.join("\n");
    serve(router.route(&format!("{proxy}/catalogs/sky/api/v1/all"), get(async || content))).await
}

fn version() -> Value {
    json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "", "gitTreeState": "", "buildDate": "", "goVersion": "",
        "compiler": "", "platform": ""})
}

/// Starts an API server without catalogs and with extension kite in version 1.0.0, whose only revision has two objects in a Secret that is
/// gone.
pub(crate) async fn with_lost_secret() -> Cluster {
    let olm = |kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": "olm.operatorframework.io/v1", "kind": kind,
            "metadata": {"name": name, "labels": {"olm.operatorframework.io/owner-name": "kite"}, "annotations": {
                "olm.operatorframework.io/bundle-name": "kite.v1.0.0", "olm.operatorframework.io/bundle-version": "1.0.0"}},
            "spec": spec})
    };
    let reference = |key: &str| json!({"ref": {"name": "lost", "key": key}});
    let revision = json!({"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent",
        "phases": [{"name": "crds", "objects": [reference("one"), reference("two")]}]});
    let extension =
        json!({"namespace": "sky", "source": {"sourceType": "Catalog", "catalog": {"packageName": "kite"}}});
    let extension = olm("ClusterExtension", "kite", extension);
    let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound",
        "message": "secrets \"lost\" not found", "code": 404});
    let list = |items: Value| json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items});
    let base = "/apis/olm.operatorframework.io/v1";
    cluster(&[
        ("/version", 200, version()),
        (
            &format!("{base}/clusterextensions"),
            200,
            list(json!([extension])),
        ),
        (&format!("{base}/clustercatalogs"), 200, list(json!([]))),
        (
            &format!("{base}/clusterobjectsets"),
            200,
            list(json!([olm("ClusterObjectSet", "kite-1", revision)])),
        ),
        (&format!("{base}/clusterextensions/kite"), 200, extension),
        ("/api/v1/namespaces/olmv1-system/secrets/lost", 404, gone),
    ])
    .await
}
