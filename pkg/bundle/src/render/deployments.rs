//! The deployments of the install strategy.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{Context, certificates};
use crate::config::DeploymentConfig;
use crate::model::StrategyDeployment;

/// Volumes of a deployment that the API server calls: name, mount path, certificate file, key file.
pub(crate) const CERTIFICATE_VOLUMES: [(&str, &str, &str, &str); 2] = [
    (
        "webhook-cert",
        "/tmp/k8s-webhook-server/serving-certs",
        "tls.crt",
        "tls.key",
    ),
    (
        "apiservice-cert",
        "/apiserver.local.config/certificates",
        "apiserver.crt",
        "apiserver.key",
    ),
];

/// Renders one `Deployment` for each of the CSV, in its order.
pub(super) fn deployments(context: &Context<'_>) -> Vec<Value> {
    context
        .bundle
        .csv
        .deployments
        .iter()
        .map(|deployment| render(context, deployment))
        .collect()
}

fn render(context: &Context<'_>, deployment: &StrategyDeployment) -> Value {
    let mut spec = deployment.spec.clone();
    if let Some(spec) = spec.as_object_mut() {
        spec.insert("revisionHistoryLimit".to_owned(), 1.into());
    }
    let annotations = annotations(context, &spec);
    let template = child(&mut spec, "template");
    child(template, "metadata").insert("annotations".to_owned(), Value::Object(annotations));
    if context.serving_deployments().contains(deployment.name.as_str()) {
        mount_certificates(
            child(template, "spec"),
            &certificates::secret_name(&deployment.name),
        );
    }
    if let Some(fingerprint) = certificates::fingerprint(context, &deployment.name) {
        child(child(template, "metadata"), "annotations")
            .insert(certificates::FINGERPRINT.to_owned(), fingerprint.into());
    }
    let mut metadata = json!({"name": deployment.name, "namespace": context.namespace});
    if !deployment.labels.is_empty()
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.insert("labels".to_owned(), json!(deployment.labels));
    }
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec, "status": {}});
    if let Some(config) = &context.config.deployment {
        customize(&mut object, config);
    }
    object
}

/// Returns the child object `key`; creates it if it is absent.
fn child<'a, C: AsChild + ?Sized>(parent: &'a mut C, key: &str) -> &'a mut Map<String, Value> {
    parent.child(key)
}

/// Objects, and values that are converted to objects.
trait AsChild {
    fn child(&mut self, key: &str) -> &mut Map<String, Value>;
}

impl AsChild for Map<String, Value> {
    fn child(&mut self, key: &str) -> &mut Map<String, Value> {
        as_object(self.entry(key).or_insert(Value::Null))
    }
}

impl AsChild for Value {
    fn child(&mut self, key: &str) -> &mut Map<String, Value> {
        as_object(self).child(key)
    }
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => {
            *other = Value::Object(Map::new());
            as_object(other)
        }
    }
}

fn as_list(value: &mut Value) -> &mut Vec<Value> {
    match value {
        Value::Array(items) => items,
        other => {
            *other = Value::Array(Vec::new());
            as_list(other)
        }
    }
}

/// Returns the list `key`; creates it if it is absent.
fn list<'a>(parent: &'a mut Map<String, Value>, key: &str) -> &'a mut Vec<Value> {
    as_list(parent.entry(key).or_insert(Value::Null))
}

/// Returns the CSV's annotations, overridden by the template's, and the watched namespaces.
fn annotations(context: &Context<'_>, spec: &Value) -> Map<String, Value> {
    let mut out: Map<String, Value> = Map::new();
    for (key, text) in &context.bundle.csv.annotations {
        out.insert(key.clone(), text.clone().into());
    }
    if let Some(Value::Object(own)) = spec.pointer("/template/metadata/annotations") {
        out.extend(own.clone());
    }
    out.insert(
        "olm.targetNamespaces".to_owned(),
        context.targets.join(",").into(),
    );
    out.insert("olm.operatorNamespace".to_owned(), context.namespace.into());
    out
}

/// Adds the certificate volumes and their mounts. Removes volumes with their names, volumes that containers mount at their
/// paths, and all mounts of both.
fn mount_certificates(pod: &mut Map<String, Value>, secret: &str) {
    let is_ours = |name: &str| CERTIFICATE_VOLUMES.iter().any(|volume| volume.0 == name);
    let is_our_path = |path: &str| CERTIFICATE_VOLUMES.iter().any(|volume| volume.1 == path);
    let mounts = list(pod, "containers")
        .iter()
        .filter_map(|container| container.get("volumeMounts")?.as_array())
        .flatten();
    let replaced: BTreeSet<String> = mounts
        .filter(|mount| is_our_path(text(mount, "mountPath")))
        .map(|mount| text(mount, "name").to_owned())
        .collect();
    let is_gone = |item: &Value| replaced.contains(text(item, "name")) && !is_ours(text(item, "name"));
    for container in list(pod, "containers")
        .iter_mut()
        .filter_map(Value::as_object_mut)
    {
        let mounts = list(container, "volumeMounts");
        mounts.retain(|mount| !is_gone(mount) && !is_ours(text(mount, "name")));
        for (name, path, _, _) in CERTIFICATE_VOLUMES {
            mounts.push(json!({"name": name, "mountPath": path}));
        }
    }
    unmount_from_init_containers(pod, is_gone);
    let volumes = list(pod, "volumes");
    volumes.retain(|volume| !is_gone(volume) && !is_ours(text(volume, "name")));
    for (name, _, certificate, key) in CERTIFICATE_VOLUMES {
        volumes.push(json!({"name": name, "secret": {
            "secretName": secret,
            "items": [{"key": "tls.crt", "path": certificate}, {"key": "tls.key", "path": key}],
        }}));
    }
}

/// Removes mounts of removed volumes, because the API server refuses a mount without its volume. Unlike containers, init
/// containers do not get the certificates.
fn unmount_from_init_containers(pod: &mut Map<String, Value>, is_gone: impl Fn(&Value) -> bool) {
    let Some(Value::Array(containers)) = pod.get_mut("initContainers") else {
        return;
    };
    for container in containers.iter_mut().filter_map(Value::as_object_mut) {
        let Some(Value::Array(mounts)) = container.get_mut("volumeMounts") else {
            continue;
        };
        mounts.retain(|mount| !is_gone(mount));
        if mounts.is_empty() {
            container.remove("volumeMounts");
        }
    }
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Applies the user's `deploymentConfig`. Init containers stay unchanged.
fn customize(object: &mut Value, config: &DeploymentConfig) {
    let spec = child(object, "spec");
    let template = child(spec, "template");
    let pod = child(template, "spec");
    for container in list(pod, "containers") {
        let Some(container) = container.as_object_mut() else {
            continue;
        };
        override_by_name(container, "env", &config.env);
        append_missing(container, "envFrom", &config.env_from);
        override_by_name(container, "volumeMounts", &config.volume_mounts);
        if let Some(resources) = &config.resources {
            container.insert("resources".to_owned(), resources.clone());
        }
    }
    override_by_name(pod, "volumes", &config.volumes);
    append_missing(pod, "tolerations", &config.tolerations);
    match &config.node_selector {
        Some(selector) if selector.is_empty() => drop(pod.remove("nodeSelector")),
        Some(selector) => drop(pod.insert("nodeSelector".to_owned(), selector.clone().into())),
        None => {}
    }
    if let Some(affinity) = &config.affinity {
        set_affinity(pod, affinity);
    }
    add_annotations(template, &config.annotations);
    if let Some(object) = object.as_object_mut() {
        add_annotations(object, &config.annotations);
    }
}

/// Replaces the last original entry of the same name in place, and appends entries with new names. Appended entries do not
/// replace each other, because a container may mount one volume at several paths.
fn override_by_name(parent: &mut Map<String, Value>, key: &str, entries: &[Value]) {
    if entries.is_empty() {
        return;
    }
    let items = list(parent, key);
    let last: BTreeMap<String, usize> = items
        .iter()
        .enumerate()
        .map(|(at, item)| (text(item, "name").to_owned(), at))
        .collect();
    for entry in entries {
        match last.get(text(entry, "name")).and_then(|at| items.get_mut(*at)) {
            Some(item) => *item = entry.clone(),
            None => items.push(entry.clone()),
        }
    }
}

fn append_missing(parent: &mut Map<String, Value>, key: &str, entries: &[Value]) {
    if entries.is_empty() {
        return;
    }
    let items = list(parent, key);
    for entry in entries {
        if !items.contains(entry) {
            items.push(entry.clone());
        }
    }
}

/// Keeps absent parts, removes empty ones and replaces the others. An affinity without parts is removed.
fn set_affinity(pod: &mut Map<String, Value>, affinity: &Map<String, Value>) {
    if affinity.is_empty() {
        pod.remove("affinity");
        return;
    }
    let current = child(pod, "affinity");
    for (part, value) in affinity {
        if value.as_object().is_some_and(Map::is_empty) {
            current.remove(part);
        } else {
            current.insert(part.clone(), value.clone());
        }
    }
    if current.is_empty() {
        pod.remove("affinity");
    }
}

/// Adds annotations; existing keys keep their values.
fn add_annotations(parent: &mut Map<String, Value>, annotations: &Map<String, Value>) {
    if annotations.is_empty() {
        return;
    }
    let existing = child(child(parent, "metadata"), "annotations");
    for (key, value) in annotations {
        existing.entry(key.clone()).or_insert_with(|| value.clone());
    }
}
