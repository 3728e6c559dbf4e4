//! Removal of secrets from objects and texts. Pure.
//!
//! Removed from objects: values of Secrets and `ConfigMap`s, literal values of environment variables, values of
//! `spec.config.inline`, the bodies of objects in revisions, and kubectl's copy of the applied manifest. Removed from
//! every text: bearer tokens, basic credentials, passwords in URLs and flags, JSON Web Tokens, private keys.

use std::sync::LazyLock;

use olm_api::keys;
use olm_text::object::ObjectId;
use regex::Regex;
use serde_json::{Value, json};

/// Text in the place of a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// Patterns of secrets in texts, and what replaces them.
static PATTERNS: LazyLock<Vec<(Regex, &'static str)>> = LazyLock::new(|| {
    [
        // Private keys, also in JSON strings with escaped line feeds.
        (
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.)*?(-----END [A-Z ]*PRIVATE KEY-----|$)",
            "[redacted private key]",
        ),
        // Values of the header Authorization, and tokens after their scheme.
        (r"(?i)\b(bearer|basic)(\s+|%20)[A-Za-z0-9._~+/=-]{6,}", "$1 [redacted]"),
        // user:password@ in URLs.
        (r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s@:]*:[^/\s@]*@", "${1}[redacted]@"),
        // JSON Web Tokens, as of service accounts.
        (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?", "[redacted token]"),
        // password=..., --token=..., "auth": "...".
        (
            r#"(?i)((?:password|passwd|token|api[_-]?key|access[_-]?key|client[_-]?secret|authorization|auth)["']?\s*[=:]\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"',;&}\]]+)"#,
            "${1}[redacted]",
        ),
    ]
    .into_iter()
    // Tests compile every pattern.
    .filter_map(|(pattern, replacement)| Some((Regex::new(pattern).ok()?, replacement)))
    .collect()
});

/// Returns `text` without secrets.
pub(crate) fn text(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, replacement) in PATTERNS.iter() {
        if pattern.is_match(&text) {
            text = pattern.replace_all(&text, *replacement).into_owned();
        }
    }
    text
}

/// Removes secrets from an object.
pub(crate) fn object(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        // Field names only, and longer than the rest of the object.
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(keys::LAST_APPLIED_ANNOTATION);
        }
    }
    let kind = ObjectId::of(object).kind.to_owned();
    if matches!(kind.as_str(), "Secret" | "ConfigMap") {
        for field in ["data", "stringData", "binaryData"] {
            values(&mut object[field]);
        }
    }
    if let Some(config) = object.pointer_mut("/spec/config/inline") {
        values(config);
    }
    let phases = object.pointer_mut("/spec/phases").and_then(Value::as_array_mut);
    for phase in phases.into_iter().flatten() {
        for entry in phase["objects"].as_array_mut().into_iter().flatten() {
            if let Some(embedded) = entry.get_mut("object") {
                *embedded = identity(embedded);
            }
        }
    }
    environment(object);
    texts(object);
}

/// Replaces every value below `value`, but keeps the keys.
fn values(value: &mut Value) {
    match value {
        Value::Null => {}
        Value::Array(items) => items.iter_mut().for_each(values),
        Value::Object(members) => members.values_mut().for_each(values),
        value => *value = REDACTED.into(),
    }
}

/// Returns the identity of an object that a revision embeds; its body may be anything.
fn identity(object: &Value) -> Value {
    let id = ObjectId::of(object);
    json!({"apiVersion": object["apiVersion"], "kind": id.kind, "body": REDACTED,
        "metadata": {"name": id.name, "namespace": id.namespace}})
}

/// Replaces the literal values of environment variables, wherever containers are.
fn environment(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(environment),
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                if key == "env" {
                    for variable in member.as_array_mut().into_iter().flatten() {
                        if let Some(literal) = variable.get_mut("value") {
                            *literal = REDACTED.into();
                        }
                    }
                }
                environment(member);
            }
        }
        _ => {}
    }
}

/// Redacts every text of a value.
fn texts(value: &mut Value) {
    match value {
        Value::String(content) => *content = text(content),
        Value::Array(items) => items.iter_mut().for_each(texts),
        Value::Object(members) => members.values_mut().for_each(texts),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that must not be in any result.
    const CANARY: &str = "c4n4ry-5ecret";

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PATTERNS.len(), 5);
    }

    #[test]
    fn secrets_in_texts() {
        for line in [
            "GET / Authorization: Bearer c4n4ry-5ecret",
            "{\"authorization\":\"Basic c4n4ry-5ecret\"}",
            "cannot pull https://user:c4n4ry-5ecret@registry.example/a",
            "cannot pull oci://:c4n4ry-5ecret@registry.example/a",
            "--token=c4n4ry-5ecret --v=1",
            "password: c4n4ry-5ecret",
            "{\"password\": \"with \\\" quote c4n4ry-5ecret\"}",
            "https://example.com/?token=c4n4ry-5ecret&a=b",
            "-----BEGIN EC PRIVATE KEY-----\nc4n4ry-5ecret\n-----END EC PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\\nc4n4ry-5ecret",
            "apiKey=c4n4ry-5ecret",
        ] {
            let clean = text(line);
            assert!(!clean.contains(CANARY), "{clean}");
            assert!(clean.contains("redacted"), "{clean}");
        }
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjNG40cnkifQ.c2lnbmF0dXJl";
        assert_eq!(text(&format!("token is {token}.")), "token is [redacted token].");
    }

    #[test]
    fn other_texts_stay() {
        for line in [
            "reconciled extension=kite step=pull",
            "--catalogd-token-file=/var/run/secrets/catalogd/token",
            "image quay.io/a/b@sha256:0123456789abcdef",
            "https://catalogd-service.olmv1-system.svc/catalogs/c/api/v1/all",
            "bearer token required",
        ] {
            assert_eq!(text(line), line);
        }
    }

    #[test]
    fn secrets_in_objects() {
        let mut all = vec![
            json!({"kind": "Secret", "metadata": {"name": "s", "annotations": {keys::LAST_APPLIED_ANNOTATION: CANARY}},
                "data": {"password": CANARY}, "stringData": {"a": CANARY}}),
            json!({"kind": "ConfigMap", "data": {"a": CANARY}, "binaryData": {"b": CANARY}}),
            json!({"kind": "ClusterExtension", "spec": {"config": {"configType": "Inline",
                "inline": {"deploymentConfig": {"env": [{"name": "A", "value": CANARY}]}, "list": [CANARY], "x": CANARY}}}}),
            json!({"kind": "ClusterObjectSet", "spec": {"phases": [{"name": "deploy", "objects": [
                {"object": {"kind": "Secret", "metadata": {"name": "kept"}, "stringData": {"a": CANARY}}}]}]}}),
            json!({"kind": "Pod", "spec": {"containers": [{"env": [{"name": "A", "value": CANARY}],
                "args": [format!("--password={CANARY}")]}]}}),
            json!({"kind": "Event", "note": format!("pulled from https://u:{CANARY}@r.example")}),
        ];
        for value in &mut all {
            object(value);
            let clean = value.to_string();
            assert!(!clean.contains(CANARY), "{clean}");
        }
        assert_eq!(all[0]["data"], json!({"password": REDACTED}));
        assert_eq!(all[2]["spec"]["config"]["inline"]["x"], REDACTED);
        assert_eq!(
            all[3]["spec"]["phases"][0]["objects"][0]["object"]["metadata"]["name"],
            "kept"
        );
    }
}
