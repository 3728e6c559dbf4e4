//! `crd-safety` on versions that go, by the real program, without a cluster.

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
