use serde_json::{Value, json};

use super::check;

fn crd(versions: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "spec": {"scope": "Namespaced", "versions": versions}})
}

fn version(name: &str, spec: &Value) -> Value {
    json!({"name": name, "served": true, "storage": name == "v1",
           "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
}

fn findings(old: &Value, new: &Value) -> Vec<String> {
    let wrap = |spec| crd(&json!([version("v1", spec)]));
    check(&wrap(old), &wrap(new))
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn loosening_passes() {
    let old = json!({"type": "object", "description": "old", "required": ["a"],
                     "properties": {"a": {"type": "string", "enum": ["x"], "maxLength": 3, "minLength": 1}}});
    let new = json!({"type": "object", "description": "new", "properties": {
        "a": {"type": "string", "enum": ["x", "y"], "maxLength": 5}, "b": {"type": "integer"}}});
    assert_eq!(findings(&old, &new), [""; 0]);
}

#[test]
fn tightening_is_named_with_its_place() {
    let old = json!({"type": "object", "properties": {"a": {"type": "string", "maxLength": 5}, "gone": {"type": "integer"}}});
    let new = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "string", "maxLength": 3, "pattern": "^x", "format": "date"}}});
    assert_eq!(
        findings(&old, &new),
        [
            "existingFieldRemoval: removed field : v1.^.spec.gone",
            "v1: ^.spec: required: new required fields: [a]",
            "v1: ^.spec.a: maxLength: maximum decreased : 5 -> 3",
            "v1: ^.spec.a: pattern: pattern added : \"\" -> \"^x\"",
            "v1: ^.spec.a: unhandled: unhandled changes found (Format \"\" -> \"date\")",
            "v1: ^.spec.gone: type: type changed : \"integer\" -> \"\"",
        ]
    );
}

#[test]
fn stored_versions_and_scope() {
    let mut old = crd(&json!([
        version("v1beta1", &json!({})),
        version("v1", &json!({}))
    ]));
    old["status"] = json!({"storedVersions": ["v1beta1", "v1"]});
    let mut new = crd(&json!([version("v1", &json!({}))]));
    new["spec"]["scope"] = "Cluster".into();
    let texts: Vec<String> = check(&old, &new).iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "scope: scope changed : \"Namespaced\" -> \"Cluster\"",
            "storedVersionRemoval: stored versions removed : [v1beta1]"
        ]
    );
}

#[test]
fn served_versions_must_agree_unless_they_are_converted() {
    let old = crd(&json!([version("v1", &json!({"type": "object"}))]));
    let mut new = crd(&json!([
        version("v1", &json!({"type": "object"})),
        version("v2", &json!({"type": "string"}))
    ]));
    let texts: Vec<String> = check(&old, &new).iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["v1 -> v2: ^.spec: type: type changed : \"object\" -> \"string\""]
    );
    // What was so before is no fault of the upgrade.
    assert!(check(&new, &new).is_empty());
    new["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert!(check(&old, &new).is_empty());
}
