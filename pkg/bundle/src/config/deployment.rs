//! `deploymentConfig`: changes of the user to the operator's deployments.

use serde_json::{Map, Value};

use crate::shape::{Shape, shapes};

/// The configuration, each part in the API's normal form.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeploymentConfig {
    pub env: Vec<Value>,
    pub env_from: Vec<Value>,
    pub volumes: Vec<Value>,
    pub volume_mounts: Vec<Value>,
    pub tolerations: Vec<Value>,
    /// `None` when absent: the deployments' own resources stay; an empty one clears them.
    pub resources: Option<Value>,
    /// `None` if absent: the deployments' own selectors stay; an empty one clears them.
    pub node_selector: Option<Map<String, Value>>,
    pub affinity: Option<Map<String, Value>>,
    pub annotations: Map<String, Value>,
}

/// Returns the shape of every field.
pub(super) fn fields() -> [(&'static str, Shape); 9] {
    let core = |name: &str| Shape::Named(format!("io.k8s.api.core.v1.{name}"));
    let list = |name: &str| Shape::List(Box::new(core(name)));
    let texts = || Shape::Map(Box::new(Shape::Str));
    [
        ("affinity", core("Affinity")),
        ("annotations", texts()),
        ("env", list("EnvVar")),
        ("envFrom", list("EnvFromSource")),
        ("nodeSelector", texts()),
        ("resources", core("ResourceRequirements")),
        ("tolerations", list("Toleration")),
        ("volumeMounts", list("VolumeMount")),
        ("volumes", list("Volume")),
    ]
}

/// Describes the effect of a field in one sentence.
pub(super) fn describe(field: &str) -> &'static str {
    match field {
        "affinity" => "Each part replaces the deployment's; an empty part removes it, {} removes all parts.",
        "annotations" => "Added to deployments and their pods; existing keys keep their values.",
        "env" => "Variables of every container; they replace variables of the same name.",
        "envFrom" => "Sources of variables, added to every container.",
        "nodeSelector" => "Replaces the pods' node selector.",
        "resources" => "Replaces the resources of every container.",
        "tolerations" => "Added to the tolerations of the pods.",
        "volumeMounts" => "Mounts of every container; they replace mounts of the same name.",
        "volumes" => "Volumes of the pods; they replace volumes of the same name.",
        _ => "",
    }
}

/// Reads a configuration that the schema accepts. The only remaining errors are invalid quantities.
pub(super) fn read(value: &Value) -> Result<DeploymentConfig, String> {
    let mut out = DeploymentConfig::default();
    for (field, shape) in fields() {
        let Some(given) = value.get(field).filter(|given| !given.is_null()) else {
            continue;
        };
        let converted = shapes().convert(&shape, given)?;
        match (field, converted) {
            ("affinity", Value::Object(map)) => out.affinity = Some(map),
            ("annotations", Value::Object(map)) => out.annotations = map,
            ("env", Value::Array(items)) => out.env = items,
            ("envFrom", Value::Array(items)) => out.env_from = items,
            ("nodeSelector", Value::Object(map)) => out.node_selector = Some(map),
            ("resources", Value::Object(map)) => out.resources = Some(map.into()),
            ("tolerations", Value::Array(items)) => out.tolerations = items,
            ("volumeMounts", Value::Array(items)) => out.volume_mounts = items,
            ("volumes", Value::Array(items)) => out.volumes = items,
            _ => {}
        }
    }
    Ok(out)
}
