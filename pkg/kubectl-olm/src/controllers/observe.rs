//! State of the cluster before an installation. Only reads.

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use olm_manifests::{Component, NAMESPACE, Overlay};
use olm_text::object::ObjectId;
use serde_json::{Value, json};

use super::preflight::{Installed, Observed};
use super::{is_ours, managers};
use crate::source::{Cluster, Kinds, SourceError};

/// Field managers of the API server and its controllers.
const CLUSTERS_OWN: [&str; 3] = [
    "kube-apiserver",
    "kube-controller-manager",
    "clusterrole-aggregation-controller",
];

/// Reads what [`super::preflight`] checks for these objects.
///
/// # Errors
/// The cluster cannot be read.
pub(crate) async fn observe(
    cluster: &Cluster,
    objects: &[Value],
    kinds: &Kinds,
) -> Result<Observed, SourceError> {
    let (version, openshift) = cluster.versions().await?;
    let (denied, doubtful) = rights(cluster, objects, kinds).await?;
    Ok(Observed {
        version,
        openshift: openshift.is_some(),
        unserved: kinds.unserved().cloned().collect(),
        denied,
        doubtful,
        controllers: controllers(cluster).await?,
        upstream_webhook: exists(
            cluster,
            "admissionregistration.k8s.io/v1",
            "MutatingWebhookConfiguration",
            "",
            "catalogd-mutating-webhook-configuration",
        )
        .await?,
        config_maps: config_maps(cluster).await?,
    })
}

/// Returns those of the overlays' `ConfigMap`s that exist.
async fn config_maps(cluster: &Cluster) -> Result<BTreeSet<&'static str>, SourceError> {
    let mut found = BTreeSet::new();
    for (name, _) in Overlay::ALL.into_iter().filter_map(Overlay::config_map) {
        if exists(cluster, "v1", "ConfigMap", NAMESPACE, name).await? {
            found.insert(name);
        }
    }
    Ok(found)
}

async fn exists(
    cluster: &Cluster,
    version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<bool, SourceError> {
    let object = json!({"apiVersion": version, "kind": kind,
        "metadata": {"name": name, "namespace": namespace}});
    let kinds = cluster.kinds(std::slice::from_ref(&object)).await?;
    Ok(cluster.present(&object, &kinds).await?.is_some())
}

/// Returns the missing rights: to write the objects, and to grant rights that the user may not have.
async fn rights(
    cluster: &Cluster,
    objects: &[Value],
    kinds: &Kinds,
) -> Result<(Vec<String>, Vec<String>), SourceError> {
    if cluster.may("*", "*", "*", "").await? {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut resources = BTreeSet::new();
    for object in objects {
        let id = ObjectId::of(object);
        if let Some(resource) = kinds.of(object) {
            resources.insert((id.group, resource.plural.clone(), id.namespace));
        }
    }
    let mut denied = Vec::new();
    for (group, resource, namespace) in resources {
        for verb in ["get", "create", "patch"] {
            if !cluster.may(verb, group, &resource, namespace).await? {
                let dot = if group.is_empty() { "" } else { "." };
                denied.push(format!("{verb} {resource}{dot}{group}"));
            }
        }
    }
    let mut doubtful = Vec::new();
    for verb in ["bind", "escalate"] {
        if !cluster
            .may(verb, "rbac.authorization.k8s.io", "clusterroles", "")
            .await?
        {
            doubtful.push(format!("{verb} clusterroles"));
        }
    }
    Ok((denied, doubtful))
}

/// Returns the Deployments of both controllers, in every namespace.
async fn controllers(cluster: &Cluster) -> Result<Vec<Installed>, SourceError> {
    let mut found = Vec::new();
    for deployment in cluster.list("apps/v1", "Deployment", None).await? {
        let name = deployment.name_any();
        if !Component::ALL
            .iter()
            .any(|component| component.deployment() == name)
        {
            continue;
        }
        let mut foreign: BTreeSet<&str> = managers(&deployment).collect();
        foreign.retain(|manager| !CLUSTERS_OWN.contains(manager));
        if is_ours(&deployment) {
            foreign.clear();
        }
        found.push(Installed {
            namespace: deployment.namespace().unwrap_or_default(),
            name,
            foreign_managers: foreign.into_iter().map(ToOwned::to_owned).collect(),
        });
    }
    Ok(found)
}
