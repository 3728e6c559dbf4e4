//! Compares the rights that RBAC grants with the requests in the audit log, to find unused and missing rights.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result};
use olm_harness::controllers::SYSTEM_NAMESPACE;
use serde_json::{Value, json};

/// A granted verb on a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// Namespace; empty for the whole cluster.
    namespace: String,
    group: String,
    /// Plural of the kind, with the subresource after a slash.
    resource: String,
    /// Name of the object; empty for all objects.
    name: String,
    verb: String,
}

/// A request in the audit log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    namespace: String,
    group: String,
    resource: String,
    name: String,
    verb: String,
    refused: bool,
}

impl Grant {
    fn covers(&self, request: &Request) -> bool {
        (self.namespace.is_empty() || self.namespace == request.namespace)
            && self.group == request.group
            && self.resource == request.resource
            && (self.name.is_empty() || self.name == request.name)
            && self.verb == request.verb
    }
}

/// Returns all rights on resources that the roles and bindings among `objects` grant to `account`.
pub fn grants(objects: &[Value], account: &str) -> BTreeSet<Grant> {
    let binds = |object: &&Value| {
        let subjects = object["subjects"].as_array().into_iter().flatten();
        let mut names = subjects.filter(|subject| subject["kind"] == "ServiceAccount");
        names.any(|subject| subject["name"] == account)
    };
    let mut grants = BTreeSet::new();
    for binding in objects.iter().filter(binds) {
        let namespace = text(&binding["metadata"]["namespace"]);
        let role = objects.iter().find(|role| {
            role["kind"] == binding["roleRef"]["kind"]
                && role["metadata"]["name"] == binding["roleRef"]["name"]
                && (role["kind"] == "ClusterRole" || text(&role["metadata"]["namespace"]) == namespace)
        });
        for rule in role
            .into_iter()
            .filter_map(|role| role["rules"].as_array())
            .flatten()
        {
            let mut names = texts(&rule["resourceNames"]);
            if names.is_empty() {
                names.push(String::new());
            }
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for name in &names {
                        grants.extend(texts(&rule["verbs"]).into_iter().map(|verb| Grant {
                            namespace: namespace.clone(),
                            group: group.clone(),
                            resource: resource.clone(),
                            name: name.clone(),
                            verb,
                        }));
                    }
                }
            }
        }
    }
    grants
}

/// Returns the requests for resources that `user` made without impersonation, from an audit log.
///
/// # Errors
/// The log is unreadable.
pub fn requests(log: &Path, user: &str) -> Result<BTreeSet<Request>> {
    read(log, |event| {
        event["user"]["username"] == user && event["impersonatedUser"].is_null()
    })
}

/// Returns the requests for resources that impersonated `user`.
///
/// # Errors
/// As [`requests`].
pub fn requests_as(log: &Path, user: &str) -> Result<BTreeSet<Request>> {
    read(log, |event| event["impersonatedUser"]["username"] == user)
}

fn read(log: &Path, wanted: impl Fn(&Value) -> bool) -> Result<BTreeSet<Request>> {
    let log = std::fs::read_to_string(log).with_context(|| log.display().to_string())?;
    // The last line may be incomplete.
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let wanted = lines.filter(|event| event["objectRef"].is_object() && wanted(event));
    Ok(wanted
        .map(|event| {
            let object = &event["objectRef"];
            let mut resource = text(&object["resource"]);
            if let Some(subresource) = object["subresource"].as_str() {
                resource = format!("{resource}/{subresource}");
            }
            Request {
                namespace: text(&object["namespace"]),
                group: text(&object["apiGroup"]),
                resource,
                name: text(&object["name"]),
                verb: text(&event["verb"]),
                refused: event["annotations"]["authorization.k8s.io/decision"] == "forbid",
            }
        })
        .collect())
}

/// Returns the rights that no request needed.
pub fn unused(grants: &BTreeSet<Grant>, requests: &BTreeSet<Request>) -> Vec<String> {
    let used = |grant: &&Grant| requests.iter().any(|request| grant.covers(request));
    let unused = grants.iter().filter(|grant| !used(grant));
    unused.map(ToString::to_string).collect()
}

/// Returns the requests that RBAC refused.
pub fn refused(requests: &BTreeSet<Request>) -> Vec<String> {
    let refused = requests.iter().filter(|request| request.refused);
    refused.map(ToString::to_string).collect()
}

/// Returns a Lease whose holder has died. It expires after a second, and a candidate watches it until then.
pub fn lease_of_dead_leader(name: &str) -> Value {
    json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
        "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 1}})
}

/// Formats as `VERB RESOURCE.GROUP NAMESPACE/NAME`, with `*` for all namespaces and names.
impl std::fmt::Display for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = |text: &str| {
            if text.is_empty() {
                "*".to_owned()
            } else {
                text.to_owned()
            }
        };
        let (namespace, name) = (all(&self.namespace), all(&self.name));
        write!(
            f,
            "{} {}.{} {namespace}/{name}",
            self.verb, self.resource, self.group
        )
    }
}

/// Formats as `VERB RESOURCE.GROUP NAMESPACE/NAME`.
impl std::fmt::Display for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (namespace, name) = (&self.namespace, &self.name);
        write!(
            f,
            "{} {}.{} {namespace}/{name}",
            self.verb, self.resource, self.group
        )
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}
