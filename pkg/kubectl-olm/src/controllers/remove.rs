//! Objects that a removal deletes, and those that it keeps. Only reads.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use olm_api::keys;
use olm_manifests::{Component, NAMESPACE, is_crd};
use olm_runtime::tls::{CATALOGD_OWN_CERT, OPERATOR_CONTROLLER_OWN_CERT};
use olm_text::list;
use olm_text::object::ObjectId;
use serde_json::{Value, json};

use super::{is_ours, managers};
use crate::source::{Cluster, SourceError};

/// Leases of the controllers.
pub(crate) const LEASES: [&str; 2] = ["catalogd-operator-lock", "9c4404e7.operatorframework.io"];
/// `ConfigMap`s that the cluster puts into every namespace.
const CLUSTERS_CONFIG_MAPS: [&str; 2] = ["kube-root-ca.crt", "openshift-service-ca.crt"];
/// Most names in a reason.
const NAMED: usize = 5;

/// An existing object of an installation.
#[derive(Debug)]
pub(crate) struct Step {
    /// Identity, as in a manifest.
    pub(crate) object: Value,
    /// Object of the cluster.
    pub(crate) present: Option<DynamicObject>,
    /// Reason why the object stays; none if it is deleted.
    pub(crate) kept: Option<String>,
}

impl Step {
    /// Returns true for a Deployment.
    pub(crate) fn is_workload(&self) -> bool {
        ObjectId::of(&self.object).kind == "Deployment"
    }

    fn is_namespace(&self) -> bool {
        ObjectId::of(&self.object).kind == "Namespace"
    }
}

/// Returns the existing objects of the installation in the order of their deletion, Deployments first.
///
/// # Errors
/// The cluster cannot be read.
pub(crate) async fn steps(cluster: &Cluster, delete_crds: bool) -> Result<Vec<Step>, SourceError> {
    let written = written();
    let is_written = |id: &ObjectId<'_>| written.iter().any(|object| ObjectId::of(object) == *id);
    let mut objects = written.clone();
    // The embedded manifests compose; a test renders all of them.
    let mut manifests = olm_manifests::all().unwrap_or_default();
    manifests.reverse();
    objects.extend(manifests.iter().map(identity));
    let kinds = cluster.kinds(&objects).await?;
    let mut steps: Vec<Step> = Vec::new();
    for object in objects {
        let Some(present) = cluster.present(&object, &kinds).await? else {
            continue;
        };
        // Two versions of an API show the same object.
        if steps.iter().any(|step| uid(step) == present.metadata.uid) {
            continue;
        }
        let id = ObjectId::of(&object);
        let kept = if is_written(&id) {
            None
        } else if !is_ours(&present) {
            Some(not_ours(&present))
        } else if is_crd(&object) && !delete_crds {
            Some("--delete-crds is not set".to_owned())
        } else {
            None
        };
        steps.push(Step {
            object,
            present: Some(present),
            kept,
        });
    }
    if let Some(at) = steps.iter().position(Step::is_namespace)
        && steps[at].kept.is_none()
    {
        steps[at].kept = content_to_keep(cluster, &manifests, &steps).await?;
    }
    // Without the Deployments of this program, their Secrets and leases are another installation's.
    let deployed = steps.iter().any(|step| step.is_workload() && step.kept.is_some());
    if deployed {
        steps.retain(|step| !is_written(&ObjectId::of(&step.object)));
    }
    // The controllers write their Secrets and leases anew while they run, so these go after the Deployments.
    steps.sort_by_key(|step| is_written(&ObjectId::of(&step.object)));
    steps.sort_by_key(|step| !step.is_workload());
    steps.sort_by_key(|step| {
        matches!(
            ObjectId::of(&step.object).kind,
            "Namespace" | "CustomResourceDefinition"
        )
    });
    Ok(steps)
}

fn not_ours(present: &DynamicObject) -> String {
    let managers: Vec<&str> = managers(present).collect();
    if managers.is_empty() {
        "not applied by kubectl olm".to_owned()
    } else {
        format!("applied by {}, not by kubectl olm", managers.join(", "))
    }
}

fn uid(step: &Step) -> Option<String> {
    step.present
        .as_ref()
        .and_then(|present| present.metadata.uid.clone())
}

/// Returns the objects that the controllers write themselves.
fn written() -> Vec<Value> {
    let object = |version: &str, kind: &str, name: &str| json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}});
    let secrets = [CATALOGD_OWN_CERT, OPERATOR_CONTROLLER_OWN_CERT].map(|name| object("v1", "Secret", name));
    let leases = LEASES.map(|name| object("coordination.k8s.io/v1", "Lease", name));
    secrets.into_iter().chain(leases).collect()
}

fn identity(object: &Value) -> Value {
    let id = ObjectId::of(object);
    let mut metadata = json!({"name": id.name});
    if !id.namespace.is_empty() {
        metadata["namespace"] = id.namespace.into();
    }
    json!({"apiVersion": object["apiVersion"], "kind": id.kind, "metadata": metadata})
}

/// Returns the reason to keep the namespace: the objects of `steps` in it that stay, and what it holds besides the installation; none if
/// nothing would be lost with it.
async fn content_to_keep(
    cluster: &Cluster,
    manifests: &[Value],
    steps: &[Step],
) -> Result<Option<String>, SourceError> {
    let staying = steps.iter().filter(|step| step.kept.is_some());
    let mut found: Vec<String> = staying
        .map(|step| ObjectId::of(&step.object))
        .filter(|id| id.namespace == NAMESPACE)
        .map(|id| format!("{} {}", id.kind, id.name))
        .collect();
    for kind in ["Pod", "ConfigMap", "Secret", "PersistentVolumeClaim"] {
        for object in cluster.list("v1", kind, Some(NAMESPACE)).await? {
            let name = object.name_any();
            let listed = manifests.iter().any(|manifest| {
                let id = ObjectId::of(manifest);
                (id.kind, id.namespace, id.name) == (kind, NAMESPACE, &name)
            });
            if !listed && !belongs(kind, &name, &object) {
                found.push(format!("{kind} {name}"));
            }
        }
    }
    Ok((!found.is_empty()).then(|| format!("it also holds {}", list(&found, NAMED))))
}

/// Returns true for objects that the controllers, or the cluster for their accounts, made.
fn belongs(kind: &str, name: &str, object: &DynamicObject) -> bool {
    let control_plane = object.labels().get("control-plane").map(String::as_str);
    match kind {
        "Pod" => {
            let name = object.labels().get("app.kubernetes.io/name");
            let is_of = |component: &Component| control_plane == Some(component.deployment());
            Component::ALL.iter().any(is_of) || name.map(String::as_str) == Some(Component::Ui.deployment())
        }
        "ConfigMap" => CLUSTERS_CONFIG_MAPS.contains(&name),
        "Secret" => {
            let type_ = object.data["type"].as_str().unwrap_or_default();
            [CATALOGD_OWN_CERT, OPERATOR_CONTROLLER_OWN_CERT].contains(&name)
                || [
                    keys::OBJECT_DATA_SECRET_TYPE,
                    "kubernetes.io/service-account-token",
                    "kubernetes.io/dockercfg",
                ]
                .contains(&type_)
                || object
                    .annotations()
                    .contains_key(keys::CERTIFICATE_NAME_ANNOTATION)
                || object
                    .annotations()
                    .contains_key(keys::ORIGINATING_SERVICE_ANNOTATION)
        }
        _ => false,
    }
}
