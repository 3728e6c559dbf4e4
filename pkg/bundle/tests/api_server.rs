//! Objects that the API server would refuse as upstream renders them.

use std::collections::BTreeMap;

use olm_bundle::{Certificates, RenderOptions, parse, render};
use serde_json::{Value, json};

#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn rendered(csv: &Value, manifests: &[Value]) -> Vec<Value> {
    let mut spec = json!({
        "installModes": [{"type": "AllNamespaces", "supported": true}],
        "install": {"spec": {"deployments": [{"name": "one"}]}},
    });
    let more = csv.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(more);
    let csv = json!({"kind": "ClusterServiceVersion", "metadata": {"name": "small.v1.0.0"}, "spec": spec});
    let annotations = r#"{"annotations": {"operators.operatorframework.io.bundle.package.v1": "small"}}"#;
    let mut files = BTreeMap::from([
        ("metadata/annotations.yaml".to_owned(), annotations.into()),
        ("manifests/csv.json".to_owned(), csv.to_string().into_bytes()),
    ]);
    for (at, manifest) in manifests.iter().enumerate() {
        files.insert(format!("manifests/{at}.json"), manifest.to_string().into_bytes());
    }
    let mut options = RenderOptions::new("olm-test");
    options.certificates = Certificates::CertManager;
    render(&parse(&files).unwrap(), &options).unwrap()
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

/// The API server refuses the port 0.
#[test]
fn webhooks_without_a_port_use_that_of_https() {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x"}, "spec": {"group": "x", "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"}, "versions": [{"name": "v1", "served": true, "storage": true}]}});
    let webhook = |kind: &str| json!({"type": kind, "generateName": "w.x", "deploymentName": "one"});
    let mut conversion = webhook("ConversionWebhook");
    conversion["conversionCRDs"] = json!(["things.x"]);
    let csv = json!({
        "customresourcedefinitions": {"owned": [{"name": "things.x", "version": "v1", "kind": "Thing"}]},
        "webhookdefinitions": [webhook("ValidatingAdmissionWebhook"), webhook("MutatingAdmissionWebhook"), conversion],
    });
    let objects = rendered(&csv, &[crd]);
    let port = |kind: &str, pointer: &str| of_kind(&objects, kind)[0].pointer(pointer).cloned();
    let admission = "/webhooks/0/clientConfig/service/port";
    for (kind, pointer) in [
        ("ValidatingWebhookConfiguration", admission),
        ("MutatingWebhookConfiguration", admission),
        (
            "CustomResourceDefinition",
            "/spec/conversion/webhook/clientConfig/service/port",
        ),
        ("Service", "/spec/ports/0/port"),
    ] {
        assert_eq!(port(kind, pointer), Some(443.into()), "{kind}");
    }
}

/// A namespaced object without a namespace cannot be applied, nor a cluster-scoped one with a namespace.
#[test]
fn every_kind_of_manifest_has_its_scope() {
    let cases = [
        ("v1", "ConfigMap", true),
        ("v1", "Secret", true),
        ("v1", "Service", true),
        ("v1", "ServiceAccount", true),
        ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", true),
        ("monitoring.coreos.com/v1", "PodMonitor", true),
        ("monitoring.coreos.com/v1", "PrometheusRule", true),
        ("monitoring.coreos.com/v1", "ServiceMonitor", true),
        ("networking.k8s.io/v1", "NetworkPolicy", true),
        ("policy/v1", "PodDisruptionBudget", true),
        ("rbac.authorization.k8s.io/v1", "Role", true),
        ("rbac.authorization.k8s.io/v1", "RoleBinding", true),
        ("console.openshift.io/v1", "ConsoleCLIDownload", false),
        ("console.openshift.io/v1", "ConsoleLink", false),
        ("console.openshift.io/v1", "ConsolePlugin", false),
        ("console.openshift.io/v1", "ConsoleQuickStart", false),
        ("console.openshift.io/v1", "ConsoleYAMLSample", false),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", false),
        ("scheduling.k8s.io/v1", "PriorityClass", false),
    ];
    let manifest = |(version, kind, _): &(&str, &str, bool)| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "own"}});
    let manifests: Vec<Value> = cases.iter().map(manifest).collect();
    let objects = rendered(&json!({}), &manifests);
    for (_, kind, namespaced) in cases {
        let found = of_kind(&objects, kind);
        assert_eq!(found.len(), 1, "{kind}");
        let namespace = found[0].pointer("/metadata/namespace").and_then(Value::as_str);
        assert_eq!(namespace, namespaced.then_some("olm-test"), "{kind}");
    }
}
