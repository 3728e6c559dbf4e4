//! Generates the files of a registry+v1 bundle from a row of a table.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Keyword, Row, package_name};

/// An image that the pod stand-in never marks as pulled.
pub const BAD_IMAGE: &str = "registry.invalid/bad-image:v0";

/// Returns the files of the bundle of a row, by path. `id` makes names unique.
pub fn files(row: &Row, id: &str) -> BTreeMap<String, Vec<u8>> {
    let package = package_name(&row.package, id);
    let mut files = BTreeMap::new();
    let mut add = |path: &str, object: &Value| {
        files.insert(path.to_owned(), object.to_string().into_bytes());
    };
    let format = row.contents.iter().find_map(|keyword| match keyword {
        Keyword::Format(format) => Some(format.as_str()),
        _ => None,
    });
    add(
        "metadata/annotations.yaml",
        &json!({"annotations": {
            "operators.operatorframework.io.bundle.mediatype.v1": format.unwrap_or("registry+v1"),
            "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
            "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
            "operators.operatorframework.io.bundle.package.v1": package,
        }}),
    );
    for keyword in &row.contents {
        match keyword {
            Keyword::Crd => add(
                "manifests/crd.yaml",
                &crd(id, &json!({"size": {"type": "integer"}})),
            ),
            Keyword::SmallCrd => {
                let size = json!({"type": "integer", "maximum": 5});
                add("manifests/crd.yaml", &crd(id, &json!({"size": size})));
            }
            Keyword::WideCrd => {
                let fields = json!({"size": {"type": "integer"}, "color": {"type": "string"}});
                add("manifests/crd.yaml", &crd(id, &fields));
            }
            Keyword::TwoVersionsCrd => add("manifests/crd.yaml", &two_versions_crd(id)),
            Keyword::ConfigMap => add("manifests/configmap.yaml", &config_map("test-configmap", row, id)),
            Keyword::ExtraConfigMap => add("manifests/extra.yaml", &config_map("extra-configmap", row, id)),
            Keyword::Ingress => add(
                "manifests/ingress.yaml",
                &json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"}}),
            ),
            Keyword::LargeCrds(count) => {
                for number in 0..*count {
                    add(
                        &format!("manifests/large-{number}.yaml"),
                        &large_crd(number, row, id),
                    );
                }
            }
            Keyword::Many(count) => {
                for number in 0..*count {
                    let name = format!("many-{number}");
                    add(&format!("manifests/{name}.yaml"), &config_map(&name, row, id));
                }
            }
            _ => {}
        }
    }
    if !row.contents.contains(&Keyword::NoCsv) {
        add("manifests/csv.yaml", &csv(row, &package, id));
    }
    files
}

fn config_map(name: &str, row: &Row, id: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("{name}-{id}")},
        "data": {"version": row.version, "name": name},
    })
}

/// Returns a CRD as large as real ones, which has many fields with long descriptions.
fn large_crd(number: usize, row: &Row, id: &str) -> Value {
    const FIELDS: usize = 200;
    let sentence = format!(
        "What version {} of the operator makes of this field. ",
        row.version
    );
    let description = sentence.repeat(4000 / sentence.len());
    let fields: serde_json::Map<String, Value> = (0..FIELDS)
        .map(|field| {
            let schema = json!({"type": "string", "description": description});
            (format!("field{field}"), schema)
        })
        .collect();
    let mut crd = crd(id, &json!({"size": {"type": "integer"}}));
    let (group, plural) = (format!("e2e-{id}.example.com"), format!("large{number}s"));
    crd["metadata"] = json!({"name": format!("{plural}.{group}"), "annotations": {"version": row.version}});
    crd["spec"]["names"] = json!({"kind": format!("Large{number}"), "listKind": format!("Large{number}List"),
        "plural": plural, "singular": format!("large{number}")});
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] =
        json!(fields);
    crd
}

/// Returns the CRD of the generated bundles, with the properties `fields` in `spec`. `id` is the scenario's.
#[must_use]
pub fn crd(id: &str, fields: &Value) -> Value {
    let group = format!("e2e-{id}.example.com");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("tests.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Test", "listKind": "TestList", "plural": "tests", "singular": "test"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": fields},
                }}},
            }],
        },
    })
}

/// Returns a CRD that serves v1alpha1 besides v1, which is the storage version.
fn two_versions_crd(id: &str) -> Value {
    let mut crd = crd(id, &json!({"size": {"type": "integer"}}));
    if let Some(Value::Array(versions)) = crd.pointer_mut("/spec/versions")
        && let Some(mut older) = versions.first().cloned()
    {
        older["name"] = "v1alpha1".into();
        older["storage"] = false.into();
        versions.push(older);
    }
    crd
}

fn csv(row: &Row, package: &str, id: &str) -> Value {
    let has = |keyword: &Keyword| row.contents.contains(keyword);
    let mut modes: Vec<&str> = row
        .contents
        .iter()
        .filter_map(|keyword| {
            if let Keyword::InstallMode(mode) = keyword {
                Some(mode.as_str())
            } else {
                None
            }
        })
        .collect();
    if modes.is_empty() {
        modes.push("AllNamespaces");
    }
    let group = format!("e2e-{id}.example.com");
    let mut owned = Vec::new();
    for keyword in &row.contents {
        match keyword {
            Keyword::Crd | Keyword::SmallCrd | Keyword::WideCrd | Keyword::TwoVersionsCrd => {
                owned.push(json!({"name": format!("tests.{group}"), "kind": "Test", "version": "v1"}));
            }
            Keyword::LargeCrds(count) => owned.extend((0..*count).map(|number| {
                json!({"name": format!("large{number}s.{group}"), "kind": format!("Large{number}"), "version": "v1"})
            })),
            _ => {}
        }
    }
    let install = if has(&Keyword::Deployment) || has(&Keyword::BadImage) {
        let image = if has(&Keyword::BadImage) {
            BAD_IMAGE
        } else {
            "registry.invalid/operator:v1"
        };
        json!({"deployments": [deployment(image, id)], "permissions": [permission(id)]})
    } else {
        json!({})
    };
    let webhooks = if has(&Keyword::Webhooks) {
        webhooks(id)
    } else {
        json!([])
    };
    let api_services = if has(&Keyword::ApiService) {
        json!([api_service(id)])
    } else {
        json!([])
    };
    let install_modes = [
        "OwnNamespace",
        "SingleNamespace",
        "MultiNamespace",
        "AllNamespaces",
    ]
    .map(|mode| json!({"type": mode, "supported": modes.contains(&mode)}));
    let properties: Vec<Value> = row
        .contents
        .iter()
        .filter_map(|keyword| {
            let Keyword::Property(text) = keyword else {
                return None;
            };
            let (type_, value) = text.split_once('=')?;
            Some(json!({"type": type_, "value": value}))
        })
        .collect();
    let mut annotations = serde_json::Map::new();
    if !properties.is_empty() {
        annotations.insert("olm.properties".to_owned(), json!(properties).to_string().into());
    }
    if has(&Keyword::NamesHolder) {
        let named = format!("Deployment.v1.apps/test-operator-{id}");
        let key = olm_api::keys::UPGRADEABLE_CONDITION_ANNOTATION;
        annotations.insert(key.to_owned(), named.into());
    }
    if has(&Keyword::NamespaceTemplate) {
        let template = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": format!("ns-{id}"), "labels": {"pod-security.kubernetes.io/enforce": "privileged"}}});
        let key = "operatorframework.io/suggested-namespace-template";
        annotations.insert(key.to_owned(), template.to_string().into());
    }
    let min_kube_version = row.contents.iter().find_map(|keyword| match keyword {
        Keyword::MinKubeVersion(version) => Some(version.as_str()),
        _ => None,
    });
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("{package}.v{}", row.version), "annotations": annotations},
        "spec": {
            "displayName": package, "version": row.version,
            "minKubeVersion": min_kube_version.unwrap_or_default(),
            "installModes": install_modes,
            "customresourcedefinitions": {"owned": owned},
            "webhookdefinitions": webhooks,
            "apiservicedefinitions": {"owned": api_services},
            "install": {"strategy": "deployment", "spec": install},
        },
    })
}

/// Returns webhooks that no server answers. Their failures are ignored, and no object needs a conversion.
fn webhooks(id: &str) -> Value {
    let group = format!("e2e-{id}.example.com");
    let webhook = |kind: &str, name: &str| {
        json!({
            "type": kind, "generateName": format!("{name}.{group}"), "deploymentName": format!("test-operator-{id}"),
            "containerPort": 443, "sideEffects": "None", "failurePolicy": "Ignore", "admissionReviewVersions": ["v1"],
        })
    };
    let mut check = webhook("ValidatingAdmissionWebhook", "check");
    check["rules"] = json!([
        {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["tests"]}]);
    let mut convert = webhook("ConversionWebhook", "convert");
    convert["conversionCRDs"] = json!([format!("tests.{group}")]);
    json!([check, convert])
}

/// Returns an API service that the Deployment would serve.
fn api_service(id: &str) -> Value {
    json!({
        "group": format!("served-{id}.example.com"), "version": "v1alpha1", "kind": "Tide", "name": "tides",
        "deploymentName": format!("test-operator-{id}"), "containerPort": 5443,
    })
}

fn permission(id: &str) -> Value {
    json!({
        "serviceAccountName": format!("bundle-manager-{id}"),
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}],
    })
}

fn deployment(image: &str, id: &str) -> Value {
    let labels = json!({"app": format!("test-operator-{id}")});
    json!({
        "name": format!("test-operator-{id}"),
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": format!("bundle-manager-{id}"),
                    "containers": [{"name": "manager", "image": image}],
                },
            },
        },
    })
}
