//! `crd-safety` on versions and conversion webhooks that go, by the real program, without a cluster.

#![expect(clippy::unwrap_used, reason = "helpers of a test")]

mod common;

use common::run;
use serde_json::{Value, json};

fn crd(versions: &[&str], storage: &str, stored: &[&str]) -> String {
    let version = |name: &&str| json!({"name": name, "served": true, "storage": *name == storage});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tests.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Test", "plural": "tests"},
                 "versions": versions.iter().map(version).collect::<Vec<_>>()},
        "status": {"storedVersions": stored},
    })
    .to_string()
}

/// Writes an old and a new CRD, and returns the paths.
fn pair(folder: &tempfile::TempDir, old: &str, new: &str) -> [String; 2] {
    [("old.yaml", old), ("new.yaml", new)].map(|(name, text)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    })
}

#[test]
fn a_version_that_is_no_longer_served_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = pair(
        &folder,
        &crd(&["v1alpha1", "v1"], "v1", &["v1"]),
        &crd(&["v1"], "v1", &[]),
    );
    let said = run(&["crd-safety", &old, &new]);
    assert_eq!(said.code, 0, "{said}");
    assert_eq!(
        said.out,
        "tests.example.com: safe\n  warning: version v1alpha1 is no longer served; its use was not checked: this needs a \
         cluster\n"
    );
    let said = run(&["crd-safety", "--upstream", &old, &new]);
    assert_eq!(said.out, "tests.example.com: safe\n", "{said}");
}

#[test]
fn a_removed_stored_version_comes_with_migration_steps() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new] = pair(
        &folder,
        &crd(&["v1alpha1", "v1"], "v1", &["v1alpha1", "v1"]),
        &crd(&["v1"], "v1", &[]),
    );
    let said = run(&["crd-safety", &old, &new]);
    assert_eq!(said.code, 1, "{said}");
    assert!(
        said.out.contains(
            "\n  Objects may be stored in v1alpha1. 1. Store all objects in v1: `kubectl get tests.v1.example.com -A -o json | kubectl \
             replace -f -`. 2. "
        ),
        "{said}"
    );
    let said = run(&["crd-safety", &old, &new, "-o", "json"]);
    let value: Value = serde_json::from_str(&said.out).unwrap();
    let crd = &value["crds"][0];
    assert_eq!(crd["findings"][0]["rule"], "storedVersionRemoval");
    assert!(crd["steps"].as_str().unwrap().contains("--subresource=status"));
}

/// Writes a bundle whose CRD has two versions that differ, with or without a conversion webhook in the CSV.
fn bundle(folder: &tempfile::TempDir, name: &str, webhook: bool) -> String {
    let version = |name: &str, type_: &str| {
        let spec = json!({"type": "object", "properties": {"size": {"type": type_}}});
        json!({"name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
    };
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tests.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Test", "listKind": "TestList", "plural": "tests", "singular": "test"},
            "versions": [version("v1alpha1", "string"), version("v1", "integer")]}});
    let conversion = json!({"type": "ConversionWebhook", "generateName": "convert.tests.example.com",
        "deploymentName": "test", "containerPort": 443, "targetPort": 9443, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "webhookPath": "/convert", "conversionCRDs": ["tests.example.com"]});
    let labels = json!({"app": "test"});
    let csv = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("test.{name}")},
        "spec": {"version": "1.0.0", "installModes": [{"type": "AllNamespaces", "supported": true}],
            "customresourcedefinitions": {"owned": [
                {"name": "tests.example.com", "kind": "Test", "version": "v1alpha1"},
                {"name": "tests.example.com", "kind": "Test", "version": "v1"}]},
            "webhookdefinitions": if webhook { json!([conversion]) } else { json!([]) },
            "install": {"strategy": "deployment", "spec": {"deployments": [{"name": "test", "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "manager", "image": "registry.example/test:1"}]}}}}]}}}});
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.package.v1": "test",
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1"}});
    let root = folder.path().join(name);
    for (path, object) in [
        ("manifests/csv.yaml", csv),
        ("manifests/crd.yaml", crd),
        ("metadata/annotations.yaml", annotations),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, object.to_string()).unwrap();
    }
    root.display().to_string()
}

#[test]
fn conversion_webhooks_of_bundles_count() {
    let folder = tempfile::tempdir().unwrap();
    let (with, without) = (bundle(&folder, "v1", true), bundle(&folder, "v2", false));
    let said = run(&["crd-safety", &with, &without]);
    assert_eq!(said.code, 1, "{said}");
    assert!(
        said.out
            .contains("v1alpha1 -> v1 without the conversion webhook: ^.spec.size"),
        "{said}"
    );
    let said = run(&["crd-safety", &with, &with]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "tests.example.com: safe\n"),
        "{said}"
    );

    std::fs::remove_file(folder.path().join("v2/manifests/csv.yaml")).unwrap();
    let said = run(&["crd-safety", &with, &without]);
    assert_eq!(said.code, 1, "{said}");
    assert!(said.err.contains("would be refused: "), "{said}");
}
