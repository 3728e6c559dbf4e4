//! Collection of a support bundle. What cannot be read is noted, and the rest goes on.

use std::io::{self, Write};

use olm_api::API_VERSION;
use olm_manifests::NAMESPACE;
use olm_text::object::metadata_name;
use serde_json::{Value, json};

use super::archive::Archive;
use crate::source::{Cluster, LOG_BYTES, LOG_LINES, SourceError};

/// API version, kind, and whether only the namespace of the controllers is read.
const KINDS: [(&str, &str, bool); 20] = [
    (API_VERSION, "ClusterCatalog", false),
    (API_VERSION, "ClusterExtension", false),
    (API_VERSION, "ClusterObjectSet", false),
    ("apps/v1", "Deployment", true),
    ("apps/v1", "ReplicaSet", true),
    ("v1", "Pod", true),
    ("v1", "Service", true),
    ("v1", "ServiceAccount", true),
    ("v1", "ConfigMap", true),
    ("v1", "Secret", true),
    ("discovery.k8s.io/v1", "EndpointSlice", true),
    ("coordination.k8s.io/v1", "Lease", true),
    ("policy/v1", "PodDisruptionBudget", true),
    ("networking.k8s.io/v1", "NetworkPolicy", true),
    ("rbac.authorization.k8s.io/v1", "Role", true),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", true),
    ("v1", "Node", false),
    (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        false,
    ),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        false,
    ),
    ("events.k8s.io/v1", "Event", true),
];
/// Namespace of events about cluster-scoped objects.
const EVENTS_NAMESPACE: &str = "default";
/// CRDs of OLM.
const CRDS: [&str; 3] = [
    "clustercatalogs.olm.operatorframework.io",
    "clusterextensions.olm.operatorframework.io",
    "clusterobjectsets.olm.operatorframework.io",
];
/// Services and ports with metrics.
const METRICS: [(&str, u16); 2] = [("catalogd-service", 7443), ("operator-controller-service", 8443)];

/// Collects objects, events, logs and metrics into the archive.
///
/// # Errors
/// The archive cannot be written.
pub(crate) async fn collect<W: Write>(cluster: &Cluster, archive: &mut Archive<W>) -> io::Result<()> {
    let mut pods = Vec::new();
    for (api_version, kind, namespaced) in KINDS {
        let namespace = namespaced.then_some(NAMESPACE);
        let objects = list(cluster, archive, api_version, kind, namespace).await;
        for object in &objects {
            write(archive, object)?;
        }
        if kind == "Pod" {
            pods = objects;
        }
    }
    let events = list(
        cluster,
        archive,
        "events.k8s.io/v1",
        "Event",
        Some(EVENTS_NAMESPACE),
    )
    .await;
    for event in events.iter().filter(|event| is_olms(event)) {
        write(archive, event)?;
    }
    for name in CRDS {
        match cluster.crd(name).await {
            Ok(Some(crd)) => {
                archive.object(&format!("objects/customresourcedefinitions/{name}.yaml"), &crd)?;
            }
            Ok(None) => archive.missing(name, "it does not exist"),
            Err(error) => archive.missing(name, &olm_text::chain(&error)),
        }
    }
    for pod in &pods {
        logs(cluster, archive, pod).await?;
    }
    for (service, port) in METRICS {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/services/https:{service}:{port}/proxy/metrics");
        match cluster.text(&path).await {
            Ok(text) => archive.text(&format!("metrics/{service}.txt"), &text)?,
            Err(error) => archive.missing(&format!("metrics of {service}"), &olm_text::chain(&error)),
        }
    }
    Ok(())
}

async fn list<W: Write>(
    cluster: &Cluster,
    archive: &mut Archive<W>,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
) -> Vec<Value> {
    let found: Result<_, SourceError> = cluster.list(api_version, kind, namespace).await;
    match found {
        Ok(objects) => objects
            .into_iter()
            .filter_map(|object| {
                let mut value = serde_json::to_value(object).ok()?;
                value["apiVersion"] = api_version.into();
                value["kind"] = kind.into();
                Some(value)
            })
            .collect(),
        Err(error) => {
            archive.missing(kind, &olm_text::chain(&error));
            Vec::new()
        }
    }
}

/// Writes an object; of a Secret only its name, type and keys.
fn write<W: Write>(archive: &mut Archive<W>, object: &Value) -> io::Result<()> {
    let text = |pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let folder = text("/kind").to_lowercase();
    let path = format!("objects/{folder}/{}.yaml", file_name(text("/metadata/name")));
    if text("/kind") == "Secret" {
        let keys: Vec<&String> = object["data"]
            .as_object()
            .into_iter()
            .flat_map(|data| data.keys())
            .collect();
        let summary = json!({"kind": "Secret", "type": object["type"], "keys": keys,
            "metadata": {"name": text("/metadata/name"), "creationTimestamp": object["metadata"]["creationTimestamp"]}});
        return archive.object(&path, &summary);
    }
    archive.object(&path, object)
}

/// Returns the name of an object as one part of a path.
fn file_name(name: &str) -> String {
    name.replace(['/', '\\', ':'], "_")
}

fn is_olms(event: &Value) -> bool {
    let kind = event["regarding"]["kind"].as_str().unwrap_or_default();
    matches!(kind, "ClusterExtension" | "ClusterObjectSet" | "ClusterCatalog")
}

/// Adds the logs of a pod's containers, and those before their last restart.
async fn logs<W: Write>(cluster: &Cluster, archive: &mut Archive<W>, pod: &Value) -> io::Result<()> {
    let name = metadata_name(pod);
    for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
        let container = container["name"].as_str().unwrap_or_default();
        let statuses = pod["status"]["containerStatuses"].as_array();
        let mut status = statuses
            .into_iter()
            .flatten()
            .filter(|status| status["name"] == container);
        let restarted = status.any(|status| status["restartCount"].as_i64().is_some_and(|count| count > 0));
        for previous in [false, true] {
            if previous && !restarted {
                continue;
            }
            let suffix = if previous { ".previous" } else { "" };
            let path = format!("logs/{}/{container}{suffix}.log", file_name(name));
            match cluster.log(NAMESPACE, name, container, previous).await {
                Ok(tail) => {
                    let (text, whole) = tail.finish();
                    archive.text(&path, &text)?;
                    if !whole {
                        let kept = format!("at most {LOG_LINES} and {} MiB", LOG_BYTES >> 20);
                        archive.missing(&path, &format!("only its newest lines are kept, {kept}"));
                    }
                }
                Err(error) => archive.missing(&path, &olm_text::chain(&error)),
            }
        }
    }
    Ok(())
}

/// Returns the versions of this program and of the cluster.
///
/// # Errors
/// The API server does not answer.
pub(crate) async fn versions(cluster: &Cluster) -> Result<Value, SourceError> {
    let (kubernetes, openshift) = cluster.versions().await?;
    Ok(json!({"kubectl-olm": env!("CARGO_PKG_VERSION"), "kubernetes": kubernetes, "openshift": openshift}))
}
