//! State of the cluster before an installation. Only reads.

use std::collections::{BTreeMap, BTreeSet};

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

/// Reads what [`super::preflight`] checks for the objects to apply and for those that a former installation may have left.
///
/// # Errors
/// The cluster cannot be read.
pub(crate) async fn observe(
    cluster: &Cluster,
    objects: &[Value],
    kinds: &Kinds,
    superfluous: &[Value],
) -> Result<Observed, SourceError> {
    let (version, openshift) = cluster.versions().await?;
    let (denied, doubtful) = rights(cluster, objects, kinds, superfluous).await?;
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

/// Returns the missing rights: to write the objects and to delete superfluous ones, and to grant rights that the user may not have.
async fn rights(
    cluster: &Cluster,
    objects: &[Value],
    kinds: &Kinds,
    superfluous: &[Value],
) -> Result<(Vec<String>, Vec<String>), SourceError> {
    if cluster.may("*", "*", "*", "").await? {
        return Ok((Vec::new(), Vec::new()));
    }
    let mut denied = BTreeSet::new();
    for (resource, _) in by_resource(objects, kinds) {
        for verb in ["get", "create", "patch"] {
            if !resource.permits(cluster, verb).await? {
                denied.insert(resource.right(verb));
            }
        }
    }
    let kinds = cluster.kinds(superfluous).await?;
    for (resource, objects) in by_resource(superfluous, &kinds) {
        if !resource.permits(cluster, "get").await? {
            denied.insert(resource.right("get"));
        } else if !resource.permits(cluster, "delete").await?
            && any_is_left(cluster, &objects, &kinds).await?
        {
            denied.insert(resource.right("delete"));
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
    Ok((denied.into_iter().collect(), doubtful))
}

/// Resource in a namespace, or in the whole cluster.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Resource<'a> {
    group: &'a str,
    plural: String,
    namespace: &'a str,
}

impl Resource<'_> {
    async fn permits(&self, cluster: &Cluster, verb: &str) -> Result<bool, SourceError> {
        cluster.may(verb, self.group, &self.plural, self.namespace).await
    }

    /// Returns the right to `verb` the resource, for people.
    fn right(&self, verb: &str) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{verb} {}{dot}{}", self.plural, self.group)
    }
}

/// Returns the objects whose kind is served, by their resource.
fn by_resource<'a>(objects: &'a [Value], kinds: &Kinds) -> BTreeMap<Resource<'a>, Vec<&'a Value>> {
    let mut found: BTreeMap<Resource<'a>, Vec<&Value>> = BTreeMap::new();
    for object in objects {
        let id = ObjectId::of(object);
        if let Some(kind) = kinds.of(object) {
            let resource = Resource {
                group: id.group,
                plural: kind.plural.clone(),
                namespace: id.namespace,
            };
            found.entry(resource).or_default().push(object);
        }
    }
    found
}

/// Returns true if a former installation left one of the objects: only then something is deleted.
async fn any_is_left(cluster: &Cluster, objects: &[&Value], kinds: &Kinds) -> Result<bool, SourceError> {
    for object in objects {
        if cluster
            .present(object, kinds)
            .await?
            .as_ref()
            .is_some_and(is_ours)
        {
            return Ok(true);
        }
    }
    Ok(false)
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

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::response::Json;
    use axum::routing::{get, post};

    use super::*;
    use crate::source::stand_in;

    /// Returns the missing rights of a user who may do all but delete, and to whom a former installation left some objects.
    async fn denied(managers: &'static str) -> Vec<String> {
        let review = async |Json(mut review): Json<Value>| {
            let verb = review["spec"]["resourceAttributes"]["verb"].clone();
            review["status"] = json!({"allowed": verb != "delete" && verb != "*"});
            Json(review)
        };
        let maps = async || Json(stand_in::resources("v1", "ConfigMap", "configmaps", true));
        let left = async move || {
            Json(
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "left", "namespace": "n",
                "managedFields": [{"manager": managers, "operation": "Apply"}]}}),
            )
        };
        let router = Router::new()
            .route(
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                post(review),
            )
            .route("/api/v1", get(maps))
            .route("/api/v1/namespaces/n/configmaps/left", get(left));
        let cluster = stand_in::serve(router).await;
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "left", "namespace": "n"}});
        rights(&cluster, &[], &Kinds::default(), &[map]).await.unwrap().0
    }

    #[tokio::test]
    async fn objects_that_are_left_need_the_right_to_delete_them() {
        assert_eq!(denied("kubectl-olm").await, ["delete configmaps"]);
        assert!(
            denied("kubectl").await.is_empty(),
            "objects of other tools are not deleted"
        );
    }
}
