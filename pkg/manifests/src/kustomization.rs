//! The part of kustomize's format that `config/` uses. Unknown fields are errors, so that none is ignored silently.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Content of a `kustomization.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Kustomization {
    /// Always `kustomize.config.k8s.io/v1beta1`.
    #[serde(rename = "apiVersion")]
    _api_version: String,
    /// Always `Kustomization`.
    #[serde(rename = "kind")]
    _kind: String,
    /// Files and folders.
    pub(crate) resources: Vec<String>,
    /// `ConfigMap`s from files.
    pub(crate) config_map_generator: Vec<Generator>,
    /// Changes of objects.
    pub(crate) patches: Vec<Patch>,
    /// Labels of all objects.
    pub(crate) labels: Vec<Labels>,
    /// Annotations of all objects and pod templates.
    pub(crate) common_annotations: BTreeMap<String, String>,
    /// Numbers of replicas of Deployments.
    pub(crate) replicas: Vec<Replicas>,
    /// Images of containers.
    pub(crate) images: Vec<Image>,
}

/// Labels of `metadata`, but not of selectors and pod templates.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Labels {
    pub(crate) pairs: BTreeMap<String, String>,
}

/// `ConfigMap` whose data are files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Generator {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) files: Vec<String>,
    pub(crate) options: GeneratorOptions,
}

/// Options of a generated `ConfigMap`. The hash suffix must be off: names are known in advance.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct GeneratorOptions {
    pub(crate) disable_name_suffix_hash: bool,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

/// Patch inline or in a file: operations on the objects of `target`, or the deletion of one object.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Patch {
    #[serde(default, rename = "patch")]
    pub(crate) inline: Option<String>,
    #[serde(default)]
    pub(crate) path: Option<String>,
    #[serde(default)]
    pub(crate) target: Option<Target>,
}

/// Selection of objects. Patterns match whole texts.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Target {
    pub(crate) group: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) name: Option<String>,
}

/// Number of replicas of the Deployment with a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Replicas {
    pub(crate) name: String,
    pub(crate) count: u32,
}

/// Replacement of an image by name.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) new_name: String,
    pub(crate) new_tag: String,
}

/// Reads a kustomization.
pub(crate) fn read(value: Value) -> serde_json::Result<Kustomization> {
    serde_json::from_value(value)
}
