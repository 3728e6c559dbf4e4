//! Reads writes from the audit log of the API server.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

/// A write that the API server answered. It has the bodies that the audit policy logs.
#[derive(Clone, Debug, Default)]
pub struct Write {
    /// Time at which the request arrived, in a form whose order as text is the order in time.
    pub received: String,
    /// Time of the answer.
    pub answered: String,
    /// Path and query of the request.
    pub uri: String,
    /// Authenticated user, not the impersonated one.
    pub user: String,
    /// Verb of the API.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Plural of the kind.
    pub resource: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// Namespace; empty for cluster-scoped objects, Namespaces among them.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// True for a dry run.
    pub dry_run: bool,
    /// Status code.
    pub code: u64,
    /// Body of the request.
    pub body: Value,
    /// Body of the response.
    pub answer: Value,
}

impl Write {
    /// Returns true if the API server stored the write.
    pub fn is_stored(&self) -> bool {
        !self.dry_run && (200..300).contains(&self.code)
    }

    /// Converts an event of the log to a write; `None` if the request was no write to an object.
    fn of_event(event: &mut Value) -> Option<Self> {
        let text = |pointer: &str| {
            let found = event.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let verb = text("/verb");
        let is_write = ["create", "update", "patch", "delete", "deletecollection"].contains(&verb.as_str());
        if !is_write || text("/objectRef/resource").is_empty() {
            return None;
        }
        let mut name = text("/objectRef/name");
        if name.is_empty() {
            name = text("/requestObject/metadata/name");
        }
        // For a Namespace, the log has its name also as its namespace, but the object has no namespace.
        let namespace = match text("/objectRef/resource").as_str() {
            "namespaces" => String::new(),
            _ => text("/objectRef/namespace"),
        };
        let dry_run = text("/requestURI").contains("dryRun=All") || text("/requestObject/dryRun/0") == "All";
        Some(Self {
            received: text("/requestReceivedTimestamp"),
            answered: text("/stageTimestamp"),
            uri: text("/requestURI"),
            user: text("/user/username"),
            group: text("/objectRef/apiGroup"),
            resource: text("/objectRef/resource"),
            subresource: text("/objectRef/subresource"),
            namespace,
            code: event
                .pointer("/responseStatus/code")
                .and_then(Value::as_u64)
                .unwrap_or_default(),
            verb,
            name,
            dry_run,
            body: event["requestObject"].take(),
            answer: event["responseObject"].take(),
        })
    }
}

/// Reads the stored writes of an audit log in the order in which the API server received them. The log itself has the order of
/// the answers, which may differ.
///
/// # Errors
/// The log cannot be read or is not JSON.
pub fn read(log: &Path) -> Result<Vec<Write>> {
    let file = std::fs::File::open(log).with_context(|| format!("cannot open {}", log.display()))?;
    let mut writes = Vec::new();
    for line in BufReader::new(file).lines() {
        let line = line.with_context(|| format!("cannot read {}", log.display()))?;
        // The API server may be writing the last line.
        let Ok(mut event) = serde_json::from_str::<Value>(&line) else {
            continue;
        };
        writes.extend(Write::of_event(&mut event).filter(Write::is_stored));
    }
    writes.sort_by(|a, b| a.received.cmp(&b.received));
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_become_writes() {
        let event = json!({"verb": "patch", "requestURI": "/api/v1/namespaces/n/configmaps/c?fieldManager=olm&force=true",
            "user": {"username": "operator-controller"}, "responseStatus": {"code": 201},
            "objectRef": {"resource": "configmaps", "namespace": "n", "name": "c", "apiVersion": "v1"},
            "requestObject": {"kind": "ConfigMap"}, "requestReceivedTimestamp": "2026-01-01T00:00:00.000001Z"});
        let write = Write::of_event(&mut event.clone()).unwrap();
        assert_eq!(
            (write.resource.as_str(), write.name.as_str()),
            ("configmaps", "c")
        );
        assert!(write.is_stored() && write.body["kind"] == "ConfigMap");
        let mut dry = event.clone();
        dry["requestURI"] = json!("/api/v1/namespaces/n/configmaps/c?&dryRun=All");
        assert!(!Write::of_event(&mut dry).unwrap().is_stored());
        let mut refused = event.clone();
        refused["responseStatus"]["code"] = json!(409);
        assert!(!Write::of_event(&mut refused).unwrap().is_stored());
        let mut of_namespace = event.clone();
        of_namespace["objectRef"] = json!({"resource": "namespaces", "namespace": "n", "name": "n"});
        assert_eq!(Write::of_event(&mut of_namespace).unwrap().namespace, "");
        let mut read = event;
        read["verb"] = json!("get");
        assert!(Write::of_event(&mut read).is_none());
    }
}
