//! Requests of users and of stand-ins: catalogd, which sets the status of catalogs, and the controller of Deployments.

use olm_proof::Actor;
use olm_world::Request;
use serde_json::{Value, json};

/// An action of a user or of catalogd in a scenario.
#[derive(Clone, Debug)]
pub enum Action {
    /// Applies an object by server-side apply with force, as field manager `user`.
    Apply(Value),
    /// Changes an object by a merge patch, which also has the object's identity.
    Merge(Value),
    /// Deletes an object. Fields other than its identity do not matter.
    Delete(Value),
    /// Lets a ClusterCatalog with this name serve the content with this digest.
    Serve(&'static str, &'static str),
}

/// Returns the request of an action.
pub(crate) fn request(action: &Action) -> Request {
    let user = |name: &str| Actor::Other(name.to_owned());
    match action {
        Action::Apply(object) => {
            let path = format!("{}?fieldManager=user&force=true", path_of(object));
            apply(&path, object)
        }
        Action::Merge(object) => Request::new(user("user"), "PATCH", &path_of(object))
            .with_body(object)
            .with_content_type("application/merge-patch+json"),
        Action::Delete(object) => {
            let options =
                json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"});
            Request::new(user("user"), "DELETE", &path_of(object)).with_body(&options)
        }
        Action::Serve(name, digest) => {
            let catalog = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": name}});
            let time = "2026-01-01T00:00:00Z";
            let status = json!({"status": {
                "conditions": [{"type": "Serving", "status": "True", "reason": "Available", "message": "Serving desired content",
                    "lastTransitionTime": time}],
                "resolvedSource": {"type": "Image", "image": {"ref": digest}},
                "urls": {"base": format!("https://catalogd.olmv1-system.svc/catalogs/{name}")},
            }});
            Request::new(
                user("catalogd"),
                "PATCH",
                &format!("{}/status", path_of(&catalog)),
            )
            .with_body(&status)
            .with_content_type("application/merge-patch+json")
        }
    }
}

/// Returns the request of a server-side apply.
pub(crate) fn apply(path: &str, object: &Value) -> Request {
    Request::new(Actor::Other("user".to_owned()), "PATCH", path)
        .with_body(object)
        .with_content_type("application/apply-patch+yaml")
}

/// Returns the write of a Deployment's status: available, or unavailable if the tag of its image is `broken`. Returns `None` if
/// the status is up to date or the Deployment is being deleted.
pub(crate) fn deployment_status(deployment: &Value) -> Option<Request> {
    let generation = deployment["metadata"]["generation"].as_i64()?;
    if deployment["status"]["observedGeneration"].as_i64() == Some(generation)
        || !deployment["metadata"]["deletionTimestamp"].is_null()
    {
        return None;
    }
    let image = deployment.pointer("/spec/template/spec/containers/0/image");
    let works = !image
        .and_then(Value::as_str)
        .unwrap_or_default()
        .ends_with(":broken");
    let replicas = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let ready = if works { replicas } else { 0 };
    let time = "2026-01-01T00:00:00Z";
    let available = json!({"type": "Available", "status": if works { "True" } else { "False" },
        "reason": if works { "MinimumReplicasAvailable" } else { "MinimumReplicasUnavailable" },
        "message": "", "lastUpdateTime": time, "lastTransitionTime": time});
    let status = json!({"status": {"observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
        "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": replicas - ready, "conditions": [available]}});
    Some(
        Request::new(
            Actor::Other("deployment-controller".to_owned()),
            "PATCH",
            &format!("{}/status", path_of(deployment)),
        )
        .with_body(&status)
        .with_content_type("application/merge-patch+json"),
    )
}

/// Returns the path of an object on the API server.
pub(crate) fn path_of(object: &Value) -> String {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let prefix = if api_version.contains('/') {
        "/apis"
    } else {
        "/api"
    };
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    let plural = if kind.ends_with('s') {
        format!("{kind}es")
    } else {
        format!("{kind}s")
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{prefix}/{api_version}/namespaces/{namespace}/{plural}/{name}"),
        None => format!("{prefix}/{api_version}/{plural}/{name}"),
    }
}
