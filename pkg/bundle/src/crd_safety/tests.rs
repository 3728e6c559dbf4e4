use serde_json::{Value, json};

use super::{Finding, Rules};

fn check(old: &Value, new: &Value) -> Vec<Finding> {
    super::check(old, new, Rules::Ours)
}

fn crd(versions: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "spec": {"scope": "Namespaced", "versions": versions}})
}

/// Returns a CRD with versions (name, served, storage) and its stored versions.
pub(super) fn crd_with_versions(versions: &[(&str, bool, bool)], stored: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, served, storage)| json!({"name": name, "served": served, "storage": storage}))
        .collect();
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
           "metadata": {"name": "tests.example.com"},
           "spec": {"group": "example.com", "names": {"plural": "tests"}, "versions": versions},
           "status": {"storedVersions": stored}})
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
fn tightening_is_reported_with_its_path() {
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
    // The upgrade is not to blame for earlier faults.
    assert!(check(&new, &new).is_empty());
    new["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert!(check(&old, &new).is_empty());
}

/// Findings about the field `a` of a version that changes from `old` to `new`.
fn change(old: &Value, new: &Value) -> Vec<String> {
    let spec = |field: &Value| json!({"type": "object", "properties": {"a": field}});
    findings(&spec(old), &spec(new))
}

/// Changes that refuse no valid object and read no object differently pass.
#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn harmless_changes_pass() {
    let text = |more: Value| {
        let mut schema = json!({"type": "string"});
        schema
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        schema
    };
    let object = |more: Value| {
        let mut schema = json!({"type": "object"});
        schema
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        schema
    };
    let list = |kind: Option<&str>| json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": kind});
    let none = || text(json!({}));
    for (old, new) in [
        (
            text(json!({"example": "x"})),
            text(json!({"example": "y", "title": "t"})),
        ),
        (text(json!({"enum": ["x"]})), none()),
        (text(json!({"pattern": "^x"})), none()),
        (text(json!({"format": "hostname"})), none()),
        (none(), text(json!({"nullable": true}))),
        (none(), text(json!({"minLength": 0}))),
        (
            json!({"type": "integer", "multipleOf": 10}),
            json!({"type": "integer", "multipleOf": 5}),
        ),
        (
            json!({"type": "integer", "multipleOf": 10}),
            json!({"type": "integer"}),
        ),
        (
            json!({"type": "number", "minimum": 1, "exclusiveMinimum": true}),
            json!({"type": "number", "minimum": 1}),
        ),
        (list(None), list(Some("atomic"))),
        (list(Some("atomic")), list(None)),
        (
            object(json!({"properties": {"name": {"type": "string"}}})),
            object(json!({"properties": {"name": {"type": "string"}}, "x-kubernetes-map-type": "atomic"})),
        ),
        (
            object(json!({"x-kubernetes-preserve-unknown-fields": false})),
            object(json!({"x-kubernetes-preserve-unknown-fields": true})),
        ),
        (
            object(json!({})),
            object(json!({"additionalProperties": {"type": "string"}})),
        ),
        (
            object(
                json!({"additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}}}),
            ),
            object(
                json!({"additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}}}),
            ),
        ),
        // All fields are still kept; only the checks are removed.
        (
            object(
                json!({"properties": {"x": {"type": "object", "properties": {"y": {"type": "string", "enum": ["z"]}}}}}),
            ),
            object(json!({"x-kubernetes-preserve-unknown-fields": true})),
        ),
        (
            text(
                json!({"x-kubernetes-validations": [{"rule": "self != 'x'"}, {"rule": "self != 'y'", "message": "m"}]}),
            ),
            text(json!({"x-kubernetes-validations": [{"rule": "self != 'y'", "message": "n"}]})),
        ),
        (
            text(json!({"anyOf": [{"pattern": "^x"}]})),
            text(json!({"anyOf": [{"pattern": "^y"}, {"pattern": "^x"}]})),
        ),
        (
            text(json!({"allOf": [{"minLength": 3}, {"maxLength": 9}]})),
            text(json!({"allOf": [{"minLength": 2}]})),
        ),
        (
            text(json!({"oneOf": [{"pattern": "^x"}, {"pattern": "y$"}]})),
            none(),
        ),
        (
            text(json!({"not": {"maxLength": 5}})),
            text(json!({"not": {"maxLength": 3}})),
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
        // A field with a default is never missing.
        (
            object(json!({"properties": {"x": {"type": "string", "default": "d"}}})),
            object(json!({"properties": {"x": {"type": "string", "default": "d"}}, "required": ["x"]})),
        ),
        (
            object(json!({})),
            object(json!({"properties": {"x": {"type": "string", "default": "d"}}, "required": ["x"]})),
        ),
        (
            object(json!({"properties": {"x": {"type": "string"}}, "required": ["x"]})),
            object(json!({"properties": {"x": {"type": "string", "default": "d"}}})),
        ),
    ] {
        assert_eq!(change(&old, &new), [""; 0], "{old} to {new}");
        let wrap = |field: &Value| crd(&json!([version("v1", field)]));
        assert!(
            !super::check(&wrap(&old), &wrap(&new), Rules::Upstream).is_empty(),
            "upstream refuses {old} to {new}"
        );
    }
}

/// Each of these looks like loosening and is none.
#[test]
fn breaking_changes_do_not_pass() {
    for (old, new) in [
        // A client that reads integers cannot read these.
        (json!({"type": "integer"}), json!({"type": "number"})),
        (
            json!({"type": "string"}),
            json!({"x-kubernetes-int-or-string": true}),
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!({"type": "integer"}),
        ),
        // An absent field now reads differently, or not at all.
        (
            json!({"type": "string"}),
            json!({"type": "string", "default": "x"}),
        ),
        (
            json!({"type": "string", "default": "x"}),
            json!({"type": "string"}),
        ),
        (
            json!({"type": "string", "default": "x"}),
            json!({"type": "string", "default": "x", "nullable": true}),
        ),
        // Fields are pruned.
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object"}),
        ),
        (
            json!({"type": "object", "properties": {"x": {"type": "string", "default": "y"}}}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        ),
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "additionalProperties": {"type": "string"}}),
        ),
        // An additional alternative can make two match.
        (
            json!({"type": "string", "oneOf": [{"pattern": "^x"}]}),
            json!({"type": "string", "oneOf": [{"pattern": "^x"}, {"pattern": "x$"}]}),
        ),
        (
            json!({"type": "string", "not": {"maxLength": 3}}),
            json!({"type": "string", "not": {"maxLength": 5}}),
        ),
        (
            json!({"type": "string", "anyOf": [{"pattern": "^x"}, {"pattern": "^y"}]}),
            json!({"type": "string", "anyOf": [{"pattern": "^x"}]}),
        ),
        // Server-side apply removes the share of one owner.
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}),
        ),
        (
            json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}}),
            json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}}, "x-kubernetes-map-type": "atomic"}),
        ),
        // The field is required; where unknown fields were kept, it may already exist with any value.
        (
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "required": ["x"],
                "properties": {"x": {"type": "string", "default": "d"}}}),
        ),
        (
            json!({"type": "object"}),
            json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}}),
        ),
        (
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "true"}]}),
            json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == 'a'"}]}),
        ),
        (
            json!({"type": "string"}),
            json!({"type": "string", "x-kubernetes-something-new": true}),
        ),
    ] {
        assert_ne!(change(&old, &new), [""; 0], "{old} to {new}");
    }
}

#[test]
fn an_unreachable_version_may_change() {
    let of = |stored: &[&str], served: bool, field: &str| {
        let mut dead = version("v1alpha1", &json!({"type": field}));
        dead["served"] = served.into();
        let mut crd = crd(&json!([dead, version("v1", &json!({"type": "object"}))]));
        crd["status"] = json!({"storedVersions": stored});
        crd
    };
    let verdict = |stored: &[&str], served: bool| {
        check(&of(stored, served, "string"), &of(stored, false, "integer")).is_empty()
    };
    assert!(verdict(&["v1"], false));
    assert!(!verdict(&["v1alpha1", "v1"], false), "objects are stored in it");
    assert!(!verdict(&["v1"], true), "it was served");
    assert!(!verdict(&[], false), "nobody knows what is stored");
}

#[test]
fn versions_served_together_must_agree() {
    let of = |text: &Value| {
        crd(&json!([
            version(
                "v1beta1",
                &json!({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}})
            ),
            version("v1", &json!({"type": "object", "properties": {"a": text}})),
        ]))
    };
    let old = of(&json!({"type": "string", "enum": ["x"]}));
    let new = of(&json!({"type": "string"}));
    // Values written by v1 could not be written back by v1beta1.
    let texts: Vec<String> = check(&old, &new).iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["v1beta1 -> v1: ^.spec.a: enum: allowed enum values removed : [\"x\"]"]
    );
}

/// Both fields have the path `^.spec.a.b`.
#[test]
fn fields_with_the_same_path_are_different() {
    let text = json!({"type": "string"});
    let nested = json!({"type": "object", "properties": {"b": text}});
    let spec = |properties: Value| json!({"type": "object", "properties": properties});
    let both = spec(json!({"a": nested, "a.b": text}));
    let (inner, dotted) = (spec(json!({"a": nested})), spec(json!({"a.b": text})));
    let removed = "existingFieldRemoval: removed field : v1.^.spec.a.b";
    assert_eq!(findings(&both, &both), [""; 0]);
    for (old, new) in [(&both, &inner), (&both, &dotted), (&dotted, &inner)] {
        assert!(
            findings(old, new).iter().any(|finding| finding == removed),
            "{new}"
        );
    }
    // A field that is named like a key of schemas.
    let keyed =
        |properties: Value| json!({"type": "object", "not": {"type": "string"}, "properties": properties});
    assert_eq!(
        findings(&keyed(json!({"not": text})), &keyed(json!({}))),
        [
            "existingFieldRemoval: removed field : v1.^.spec.not",
            "v1: ^.spec.not: type: type changed : \"string\" -> \"\""
        ]
    );
}

#[test]
fn too_many_alternatives_are_not_compared() {
    let any = |count: usize, limit: u64| -> Value {
        let branches = (0..count).map(|at| json!({"maxLength": limit, "minLength": at}));
        json!({"type": "string", "anyOf": branches.collect::<Vec<_>>()})
    };
    assert_eq!(findings(&any(20, 50), &any(20, 60)), [""; 0]);
    assert_eq!(findings(&any(50_000, 50), &any(50_000, 60)).len(), 1);
    // Alternatives in alternatives count.
    let nested = |limit: u64| {
        let inner: Vec<Value> = (0..30).map(|_| any(30, limit)).collect();
        json!({"type": "string", "anyOf": inner})
    };
    assert_eq!(findings(&nested(50), &nested(60)).len(), 1);
}
