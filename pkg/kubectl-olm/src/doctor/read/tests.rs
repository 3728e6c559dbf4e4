//! The diagnosis of an API server on loopback.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Json};
use k8s_openapi::jiff::Timestamp;
use olm_manifests::{NAMESPACE, Overlay, render};
use olm_text::object::ObjectId;
use serde_json::{Value, json};

use crate::controllers::remove::LEASES;
use crate::doctor::findings;
use crate::finding::{Finding, Severity};
use crate::source::stand_in::serve;

const OLM: &str = "/apis/olm.operatorframework.io/v1";
/// Delay of a kubelet's answer, below the time limit of a call.
const SLOW: Duration = Duration::from_secs(20);

/// Returns the answers of an API server with these objects. The name of a resource is that of its kind.
fn answers(objects: &[Value]) -> BTreeMap<String, Value> {
    let version = json!({"gitVersion": "v1.36.0", "major": "1", "minor": "36", "gitCommit": "", "gitTreeState": "", "buildDate": "",
        "goVersion": "", "compiler": "", "platform": ""});
    let mut answers = BTreeMap::from([("/version".to_owned(), version)]);
    for object in objects {
        let id = ObjectId::of(object);
        let api = if id.group.is_empty() {
            format!("/api/{}", id.version)
        } else {
            format!("/apis/{}/{}", id.group, id.version)
        };
        let none = json!({"kind": "APIResourceList", "groupVersion": object["apiVersion"], "resources": []});
        let resource = json!({"name": id.kind, "singularName": "", "kind": id.kind, "verbs": ["get", "list"],
            "namespaced": !id.namespace.is_empty()});
        let resources = answers.entry(api.clone()).or_insert(none);
        if let Some(resources) = resources["resources"].as_array_mut() {
            resources.push(resource);
        }
        let folder = match id.namespace {
            "" => format!("{api}/{}", id.kind),
            namespace => format!("{api}/namespaces/{namespace}/{}", id.kind),
        };
        answers.insert(format!("{folder}/{}", id.name), object.clone());
        let list = answers
            .entry(folder)
            .or_insert_with(|| json!({"kind": "List", "metadata": {}, "items": []}));
        if let Some(items) = list["items"].as_array_mut() {
            items.push(object.clone());
        }
    }
    answers
}

/// Returns the findings about a cluster with these objects, whose catalogd asks for tokens. Leases are renewed when they are read, after a
/// slow answer of a kubelet.
async fn diagnose(objects: &[Value]) -> Vec<Finding> {
    let lease = |name| json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name, "namespace": NAMESPACE}});
    let mut objects = objects.to_vec();
    objects.extend(LEASES.map(lease));
    let mut answers = answers(&objects);
    if let Some(catalogs) = answers.get(&format!("{OLM}/ClusterCatalog")) {
        answers.insert(format!("{OLM}/clustercatalogs"), catalogs.clone());
    }
    let router = Router::new().fallback(async move |uri: Uri| {
        if uri.path().ends_with("/stats/summary") {
            tokio::time::pause();
            tokio::time::advance(SLOW).await;
            tokio::time::resume();
            return Json(json!({})).into_response();
        }
        if uri.path().contains("/proxy/catalogs/") {
            return (StatusCode::UNAUTHORIZED, "Unauthorized").into_response();
        }
        let Some(mut answer) = answers.get(uri.path()).cloned() else {
            return StatusCode::NOT_FOUND.into_response();
        };
        if answer["kind"] == "Lease" {
            let now = Timestamp::now().checked_add(SLOW).unwrap();
            answer["spec"] =
                json!({"holderIdentity": "p", "leaseDurationSeconds": 15, "renewTime": now.to_string()});
        }
        Json(answer).into_response()
    });
    let cluster = serve(router).await;
    findings(&super::read(&cluster).await.unwrap())
}

#[tokio::test]
async fn a_slow_kubelet_ages_no_lease() {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": NAMESPACE}, "spec": {"nodeName": "n"}});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    let started = tokio::time::Instant::now();
    let mut found = diagnose(&[pod, node]).await;
    assert!(started.elapsed() >= SLOW, "the kubelet was not asked");
    found.retain(|finding| finding.object.starts_with("Lease"));
    assert_eq!(found, []);
}

#[tokio::test]
async fn the_objects_of_overlays_are_compared() {
    let mut objects = render(&[Overlay::OpenShift, Overlay::Ui]).unwrap();
    objects.retain(|object| object["kind"] != "PodDisruptionBudget");
    let mut found = diagnose(&objects).await;
    // Only an API server and controllers set conditions and create certificates.
    found.retain(|finding| {
        !["CustomResourceDefinition", "Deployment", "Lease", "Secret"]
            .iter()
            .any(|kind| finding.object.starts_with(kind))
    });
    assert_eq!(found.len(), 3, "{found:?}");
    for finding in found {
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(
            finding.next,
            "kubectl olm install-controllers --overlay openshift --overlay ui creates it"
        );
    }
}

#[tokio::test]
async fn a_catalogd_that_asks_for_tokens_is_healthy() {
    let catalog = |name: &str| {
        json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": name},
            "spec": {"source": {"type": "Image", "image": {"ref": "example.com/sky:v1"}}},
            "status": {"urls": {"base": format!("https://catalogd-service.{NAMESPACE}.svc/catalogs/{name}")},
                "resolvedSource": {"type": "Image", "image": {"ref": "example.com/sky@sha256:ab"}},
                "conditions": [{"type": "Serving", "status": "True", "reason": "Available", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    };
    let mut found = diagnose(&[catalog("sky"), catalog("sea")]).await;
    found.retain(|finding| finding.object.starts_with("ClusterCatalog"));
    let [finding] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(finding.severity, Severity::Unchecked);
}
