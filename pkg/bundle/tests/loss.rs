//! A value that rendering loses is found.

use std::collections::BTreeMap;

use olm_bundle::{Certificates, Loss, RenderOptions, losses, parse, render};
use serde_json::{Value, json};

fn files() -> BTreeMap<String, Vec<u8>> {
    let schema = json!({"type": "object", "properties": {
        "list": {"type": "array", "default": [], "items": {"type": "string", "enum": ["a", "", null]}},
        "any": {"x-kubernetes-preserve-unknown-fields": false, "example": {"a": null}, "maxLength": 0},
    }, "title": "", "unknown": 1});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x", "creationTimestamp": null},
        "spec": {"group": "x", "names": {"kind": "Thing", "plural": "things"}, "scope": "Namespaced", "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let container = json!({"name": "main", "image": "x", "env": [{"name": "A", "value": ""}],
        "resources": {"limits": {"cpu": "1000m"}}, "securityContext": {"privileged": false},
        "volumeMounts": [{"name": "tls", "mountPath": "/tmp/k8s-webhook-server/serving-certs"}]});
    let spec = json!({"replicas": 0, "revisionHistoryLimit": 5, "selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [container], "volumes": [{"name": "tls", "secret": {"secretName": "own"}}]}}});
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": []}]);
    let csv = json!({"kind": "ClusterServiceVersion", "metadata": {"name": "small.v1.0.0"}, "spec": {
        "displayName": "Small", "installModes": [{"type": "AllNamespaces", "supported": true}],
        "install": {"spec": {
            "deployments": [{"name": "one", "spec": spec}],
            "clusterPermissions": [{"serviceAccountName": "one", "rules": rules}]}},
        "webhookdefinitions": [{"type": "ValidatingAdmissionWebhook", "generateName": "v.x", "deploymentName": "one",
            "containerPort": 443, "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
            "rules": [{"apiGroups": ["x"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}]}],
    }});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "namespace": "own"},
                     "data": {"a": "", "b": "c"}});
    let annotations = json!({"annotations": {"operators.operatorframework.io.bundle.package.v1": "small"}});
    [
        ("metadata/annotations.yaml", annotations),
        ("manifests/crd.json", crd),
        ("manifests/csv.json", csv),
        ("manifests/map.json", map),
    ]
    .map(|(path, value)| (path.to_owned(), value.to_string().into_bytes()))
    .into()
}

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn rendered(files: &BTreeMap<String, Vec<u8>>) -> Vec<Value> {
    let mut options = RenderOptions::new("olm-test");
    options.certificates = Certificates::CertManager;
    render(&parse(files).unwrap(), &options).unwrap()
}

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn remove(objects: &mut [Value], kind: &str, pointer: &str) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let object = objects.iter_mut().find(|object| object["kind"] == kind).unwrap();
    let parent = object.pointer_mut(parent).unwrap();
    let gone = match parent {
        Value::Array(items) => Some(items.remove(key.parse().unwrap())),
        _ => parent.as_object_mut().unwrap().remove(key),
    };
    assert!(gone.is_some(), "{pointer}");
}

#[test]
fn nothing_is_lost() {
    let files = files();
    assert_eq!(losses(&files, &rendered(&files)), []);
}

#[test]
fn volumes_of_the_certificates_of_api_services_are_replaced() {
    let mut files = files();
    let csv = files.get_mut("manifests/csv.json").unwrap();
    let mut value: Value = serde_json::from_slice(csv).unwrap();
    value["spec"]["webhookdefinitions"] = json!([]);
    value["spec"]["apiservicedefinitions"] = json!({"owned": [
        {"name": "others", "group": "y", "version": "v1", "kind": "Other", "deploymentName": "one", "containerPort": 5443}]});
    *csv = value.to_string().into_bytes();
    assert_eq!(losses(&files, &rendered(&files)), []);
}

#[test]
fn every_lost_value_is_found() {
    let files = files();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties";
    let pod = "/spec/template/spec";
    for (kind, pointer, object, path) in [
        (
            "CustomResourceDefinition",
            format!("{schema}/list/default"),
            "CustomResourceDefinition things.x",
            None,
        ),
        (
            "CustomResourceDefinition",
            format!("{schema}/list/items/enum/2"),
            "CustomResourceDefinition things.x",
            None,
        ),
        (
            "CustomResourceDefinition",
            format!("{schema}/any/example/a"),
            "CustomResourceDefinition things.x",
            None,
        ),
        (
            "CustomResourceDefinition",
            format!("{schema}/any/maxLength"),
            "CustomResourceDefinition things.x",
            None,
        ),
        ("ConfigMap", "/data/a".to_owned(), "ConfigMap map", None),
        (
            "Deployment",
            "/spec/replicas".to_owned(),
            "Deployment one",
            Some("/replicas"),
        ),
        (
            "Deployment",
            format!("{pod}/containers/0/securityContext/privileged"),
            "Deployment one",
            Some("/template/spec/containers/0/securityContext/privileged"),
        ),
        (
            "Deployment",
            format!("{pod}/containers/0/resources/limits/cpu"),
            "Deployment one",
            Some("/template/spec/containers/0/resources/limits/cpu"),
        ),
        (
            "ClusterRole",
            "/rules/0/verbs".to_owned(),
            "ClusterServiceVersion clusterPermissions/0",
            Some("/0/verbs"),
        ),
        (
            "ValidatingWebhookConfiguration",
            "/webhooks/0/timeoutSeconds".to_owned(),
            "ValidatingWebhookConfiguration v.x",
            Some("/timeoutSeconds"),
        ),
    ] {
        let mut objects = rendered(&files);
        remove(&mut objects, kind, &pointer);
        let found: Vec<(String, String)> = losses(&files, &objects)
            .into_iter()
            .map(|Loss { object, path, .. }| (object, path))
            .collect();
        assert_eq!(found, [(object.to_owned(), path.unwrap_or(&pointer).to_owned())]);
    }
}

#[test]
fn a_changed_value_and_a_missing_object_are_found() {
    let files = files();
    let mut objects = rendered(&files);
    objects.retain(|object| object["kind"] != "ConfigMap");
    for object in &mut objects {
        if object["kind"] == "CustomResourceDefinition" {
            object["spec"]["scope"] = "Cluster".into();
        }
    }
    let found: Vec<String> = losses(&files, &objects).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        found[0],
        "CustomResourceDefinition things.x\t/spec/scope\t\"Namespaced\""
    );
    assert!(found[1].starts_with("ConfigMap map\t\t{"), "{}", found[1]);
}
