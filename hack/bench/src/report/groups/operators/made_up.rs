//! A synthetic operator with large CRDs, for measurements without real bundles.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use crate::generate::Words;

/// API group of the CRDs.
const GROUP: &str = "made-up.example";
/// Size of the description of one field, in bytes.
const DESCRIPTION: usize = 200;

/// Writes a bundle to a folder. It has this number of CRDs, each of about `bytes` bytes, a Deployment with its account, and a
/// `ClusterRole`.
pub(super) fn write(folder: &Path, crds: u32, bytes: usize) -> Result<()> {
    let create = |name: &str| {
        let path = folder.join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))
    };
    create("manifests")?;
    create("metadata")?;
    let write = |name: &str, content: &Value| {
        let path = folder.join(name);
        fs::write(&path, content.to_string()).with_context(|| format!("cannot write {}", path.display()))
    };
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.package.v1": "made-up",
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
        "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
        "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
    }});
    write("metadata/annotations.yaml", &annotations)?;
    let mut words = Words::default();
    let mut owned = Vec::new();
    for number in 0..crds {
        let (kind, plural) = (format!("Kind{number}"), format!("kind{number}s"));
        let crd = crd(&kind, &plural, bytes, &mut words);
        write(&format!("manifests/{plural}.yaml"), &crd)?;
        owned.push(json!({"name": format!("{plural}.{GROUP}"), "kind": kind, "version": "v1"}));
    }
    write("manifests/csv.yaml", &csv(&owned))
}

fn crd(kind: &str, plural: &str, bytes: usize, words: &mut Words) -> Value {
    let fields: Map<String, Value> = (0..(bytes / DESCRIPTION).max(1))
        .map(|number| {
            let field = json!({"type": "string", "description": words.text(DESCRIPTION)});
            (format!("field{number}"), field)
        })
        .collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase(), "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

fn csv(owned: &[Value]) -> Value {
    let labels = json!({"app": "made-up"});
    let rules = json!([{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]);
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "made-up.v1.0.0"},
        "spec": {
            "version": "1.0.0", "installModes": [{"type": "AllNamespaces", "supported": true}],
            "customresourcedefinitions": {"owned": owned},
            "install": {"strategy": "deployment", "spec": {
                "clusterPermissions": [{"serviceAccountName": "made-up", "rules": rules}],
                "deployments": [{"name": "made-up", "spec": {
                    "replicas": 1, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"serviceAccountName": "made-up",
                        "containers": [{"name": "manager", "image": "registry.example/made-up:1"}]}},
                }}],
            }},
        },
    })
}
