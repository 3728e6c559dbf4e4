//! Defaults of built-in kinds that the controllers compare.

use serde_json::{Value, json};

use super::prepare::default;
use crate::kinds::Resource;
use crate::value::{as_map, child, items, metadata, text};

/// Adds the objects that are never absent from a kind.
pub(crate) fn structs(object: &mut Value, resource: &Resource) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("coordination.k8s.io", "Lease") => {
            child(object, "spec");
        }
        ("", "Namespace" | "Pod" | "Service")
        | ("apps", "Deployment")
        | ("apiextensions.k8s.io", "CustomResourceDefinition")
        | ("apiregistration.k8s.io", "APIService") => {
            child(object, "spec");
            child(object, "status");
        }
        _ => {}
    }
    if resource.is("rbac.authorization.k8s.io", "Role")
        || resource.is("rbac.authorization.k8s.io", "ClusterRole")
    {
        as_map(object).entry("rules").or_insert(Value::Null);
    }
    if resource.kind == "Deployment" {
        let spec = child(object, "spec");
        spec.entry("strategy").or_insert_with(|| json!({}));
        let template = spec.entry("template").or_insert_with(|| json!({}));
        child(template, "metadata");
        child(template, "spec");
    }
}

/// Returns an object of a kind without any value, as a bookmark has it.
pub(crate) fn zero(resource: &Resource) -> Value {
    let mut out = json!({"apiVersion": resource.api_version(), "kind": resource.kind});
    if resource.traits.custom {
        return out;
    }
    structs(&mut out, resource);
    if resource.kind.ends_with("Binding") {
        out["roleRef"] = json!({"apiGroup": "", "kind": "", "name": ""});
    }
    out
}

/// Fills in the defaults of a built-in object.
pub(crate) fn fill(object: &mut Value, resource: &Resource) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => {
            structs(object, resource);
            let name = text(object, "/metadata/name").to_owned();
            if !name.is_empty() {
                let label = "kubernetes.io/metadata.name";
                let labels = metadata(object).entry("labels").or_insert_with(|| json!({}));
                as_map(labels).insert(label.into(), name.into());
            }
        }
        ("", "Secret") => secret(object),
        ("coordination.k8s.io", _) => structs(object, resource),
        ("", "Service") => service(object),
        ("apps", "Deployment") => deployment(object),
        ("rbac.authorization.k8s.io", kind) => {
            structs(object, resource);
            rbac(object, kind);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd(object),
        _ => {}
    }
}

/// Sets the status that a new object has.
pub(crate) fn initial_status(object: &mut Value, resource: &Resource) {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "Namespace") => {
            let spec = child(object, "spec");
            spec.insert("finalizers".into(), json!(["kubernetes"]));
            as_map(object).insert("status".into(), json!({"phase": "Active"}));
        }
        ("apps", "Deployment") => {
            as_map(object).insert("status".into(), json!({}));
        }
        ("", "Service") => {
            as_map(object).insert("status".into(), json!({"loadBalancer": {}}));
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd_status(object),
        _ => {}
    }
}

fn secret(object: &mut Value) {
    use base64::Engine as _;
    let written = as_map(object).remove("stringData");
    if let Some(Value::Object(written)) = written {
        let data = child(object, "data");
        for (name, value) in written {
            let encoded =
                base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
            data.insert(name, encoded.into());
        }
    }
    as_map(object).entry("type").or_insert_with(|| "Opaque".into());
}

fn service(object: &mut Value) {
    for (name, value) in [
        ("type", json!("ClusterIP")),
        ("sessionAffinity", json!("None")),
        ("internalTrafficPolicy", json!("Cluster")),
        ("ipFamilies", json!(["IPv4"])),
        ("ipFamilyPolicy", json!("SingleStack")),
    ] {
        default(object, "spec", name, value);
    }
    for port in list(object, "/spec/ports") {
        let target = port["port"].clone();
        let port = as_map(port);
        port.entry("protocol").or_insert_with(|| "TCP".into());
        port.entry("targetPort").or_insert(target);
    }
}

fn deployment(object: &mut Value) {
    for (name, value) in [
        ("replicas", json!(1)),
        ("revisionHistoryLimit", json!(10)),
        ("progressDeadlineSeconds", json!(600)),
        (
            "strategy",
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}),
        ),
    ] {
        default(object, "spec", name, value);
    }
    if let Some(template) = object.pointer_mut("/spec/template") {
        child(template, "metadata");
        pod(child_value(template, "spec"));
    }
}

fn child_value<'a>(object: &'a mut Value, name: &str) -> &'a mut Value {
    as_map(object).entry(name).or_insert_with(|| json!({}))
}

fn pod(spec: &mut Value) {
    let map = as_map(spec);
    for (name, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
    ] {
        map.entry(name).or_insert(value);
    }
    if let Some(account) = map.get("serviceAccountName").cloned() {
        map.insert("serviceAccount".into(), account);
    }
    for pointer in ["/containers", "/initContainers"] {
        for container in list(spec, pointer) {
            let image = text(container, "/image");
            let latest = !image.contains('@')
                && (image.ends_with(":latest")
                    || !image.rsplit('/').next().unwrap_or_default().contains(':'));
            let policy = if latest { "Always" } else { "IfNotPresent" };
            let map = as_map(container);
            map.entry("resources").or_insert_with(|| json!({}));
            map.entry("terminationMessagePath")
                .or_insert_with(|| "/dev/termination-log".into());
            map.entry("terminationMessagePolicy")
                .or_insert_with(|| "File".into());
            map.entry("imagePullPolicy").or_insert_with(|| policy.into());
            for port in list(container, "/ports") {
                as_map(port).entry("protocol").or_insert_with(|| "TCP".into());
            }
        }
    }
}

fn rbac(object: &mut Value, kind: &str) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    if kind.ends_with("Binding") {
        if let Some(role) = object.get_mut("roleRef") {
            as_map(role).entry("apiGroup").or_insert_with(|| GROUP.into());
        }
        for subject in list(object, "/subjects") {
            let group = text(subject, "/kind") != "ServiceAccount";
            if group {
                as_map(subject).entry("apiGroup").or_insert_with(|| GROUP.into());
            }
        }
    }
}

fn crd(object: &mut Value) {
    default(object, "spec", "conversion", json!({"strategy": "None"}));
    if let Some(names) = object.pointer_mut("/spec/names") {
        let kind = text(names, "/kind").to_owned();
        let names = as_map(names);
        names
            .entry("singular")
            .or_insert_with(|| kind.to_lowercase().into());
        names
            .entry("listKind")
            .or_insert_with(|| format!("{kind}List").into());
    }
}

fn crd_status(object: &mut Value) {
    let stored: Vec<Value> = items(object, "/spec/versions")
        .iter()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    as_map(object).insert(
        "status".into(),
        json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": stored}),
    );
}

fn list<'a>(object: &'a mut Value, pointer: &str) -> &'a mut [Value] {
    object
        .pointer_mut(pointer)
        .and_then(Value::as_array_mut)
        .map(Vec::as_mut_slice)
        .unwrap_or_default()
}
