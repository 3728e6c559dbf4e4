//! Volumes and environment of rendered deployments.

use std::collections::BTreeMap;

use olm_bundle::{Certificates, RenderOptions, parse, render};
use serde_json::{Value, json};

/// Returns the pod of the only deployment, rendered with certificates if `serves` is set.
#[expect(clippy::unwrap_used, reason = "a helper of tests")]
fn rendered(pod: &Value, serves: bool, config: Option<Value>) -> Value {
    let webhooks =
        json!([{"type": "ValidatingAdmissionWebhook", "generateName": "v.x", "deploymentName": "one"}]);
    let csv = json!({"kind": "ClusterServiceVersion", "metadata": {"name": "small.v1.0.0"}, "spec": {
        "installModes": [{"type": "AllNamespaces", "supported": true}],
        "install": {"spec": {"deployments": [{"name": "one", "spec": {"template": {"spec": pod}}}]}},
        "webhookdefinitions": if serves { webhooks } else { json!([]) },
    }});
    let annotations = r#"{"annotations": {"operators.operatorframework.io.bundle.package.v1": "small"}}"#;
    let files = BTreeMap::from([
        ("metadata/annotations.yaml".to_owned(), annotations.into()),
        ("manifests/csv.json".to_owned(), csv.to_string().into_bytes()),
    ]);
    let options = RenderOptions {
        certificates: Certificates::CertManager,
        config: config.map(|config| json!({ "deploymentConfig": config })),
        ..RenderOptions::new("olm-test")
    };
    let objects = render(&parse(&files).unwrap(), &options).unwrap();
    let mut deployments = objects.iter().filter(|object| object["kind"] == "Deployment");
    deployments.next().unwrap()["spec"]["template"]["spec"].clone()
}

/// Returns `NAME PATH` of each mount.
fn mounts(container: &Value) -> Vec<String> {
    let mounts = container["volumeMounts"].as_array().into_iter().flatten();
    let text = |mount: &Value, key: &str| mount[key].as_str().unwrap_or_default().to_owned();
    mounts
        .map(|mount| format!("{} {}", text(mount, "name"), text(mount, "mountPath")))
        .collect()
}

fn names(items: &Value) -> Vec<&str> {
    let items = items.as_array().into_iter().flatten();
    items.filter_map(|item| item["name"].as_str()).collect()
}

#[test]
fn a_new_volume_is_mounted_at_several_paths() {
    let pod =
        json!({"containers": [{"name": "main", "volumeMounts": [{"name": "own", "mountPath": "/own"}]}]});
    let config = json!({
        "volumes": [{"name": "more", "emptyDir": {}}],
        "volumeMounts": [{"name": "more", "mountPath": "/a", "subPath": "a"}, {"name": "more", "mountPath": "/b", "subPath": "b"}],
        "env": [{"name": "X", "value": "1"}, {"name": "X", "value": "2"}],
    });
    let pod = rendered(&pod, false, Some(config));
    let container = &pod["containers"][0];
    assert_eq!(mounts(container), ["own /own", "more /a", "more /b"]);
    assert_eq!(names(&container["env"]), ["X", "X"]);
    assert_eq!(names(&pod["volumes"]), ["more"]);
}

/// Upstream replaces the last one. Two equal mounts would be refused by the API server.
#[test]
fn one_of_several_mounts_of_a_volume_is_replaced() {
    let own = json!([{"name": "data", "mountPath": "/a"}, {"name": "data", "mountPath": "/b"}, {"name": "x", "mountPath": "/x"}]);
    let pod = json!({"containers": [{"name": "main", "volumeMounts": own}], "volumes": [{"name": "data"}, {"name": "x"}]});
    let config = json!({"volumeMounts": [{"name": "data", "mountPath": "/c"}], "volumes": [{"name": "data", "emptyDir": {}}]});
    let pod = rendered(&pod, false, Some(config));
    assert_eq!(mounts(&pod["containers"][0]), ["data /a", "data /c", "x /x"]);
    assert_eq!(
        pod["volumes"],
        json!([{"name": "data", "emptyDir": {}}, {"name": "x"}])
    );
}

/// The API server refuses a mount whose volume is not in the pod.
#[test]
fn no_mount_outlives_its_replaced_volume() {
    let serving = "/tmp/k8s-webhook-server/serving-certs";
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    let pod = json!({
        "initContainers": [
            {"name": "first", "volumeMounts": [mount("tls", "/make"), mount("data", "/data")]},
            {"name": "second", "volumeMounts": [mount("tls", "/make")]},
            {"name": "third", "volumeMounts": [mount("webhook-cert", "/read")]},
        ],
        "containers": [
            {"name": "proxy", "volumeMounts": [mount("tls", "/etc/tls"), mount("webhook-cert", "/other")]},
            {"name": "main", "volumeMounts": [mount("tls", serving), mount("tls", "/again"), mount("data", "/data")]},
        ],
        "volumes": [{"name": "tls", "secret": {"secretName": "own"}}, {"name": "data", "emptyDir": {}}],
    });
    let pod = rendered(&pod, true, None);
    let ours = [
        format!("webhook-cert {serving}"),
        "apiservice-cert /apiserver.local.config/certificates".to_owned(),
    ];
    assert_eq!(
        names(&pod["volumes"]),
        ["data", "webhook-cert", "apiservice-cert"]
    );
    assert_eq!(mounts(&pod["containers"][0]), ours);
    assert_eq!(mounts(&pod["containers"][1])[0], "data /data");
    assert_eq!(mounts(&pod["containers"][1])[1..], ours);
    assert_eq!(mounts(&pod["initContainers"][0]), ["data /data"]);
    assert_eq!(pod["initContainers"][1].get("volumeMounts"), None);
    assert_eq!(mounts(&pod["initContainers"][2]), ["webhook-cert /read"]);
}
