//! Finds values of a bundle's manifests that its rendered objects lack.
//!
//! Every path of a CRD, of any other manifest, and of the CSV's deployments, rules and admission webhooks must be in a
//! rendered object. Only these are dropped, as upstream drops them:
//!
//! - fields that the Kubernetes type does not know;
//! - null in a field, except inside raw JSON (`default`, `example`, `enum`);
//! - `""`, `0`, `false`, `[]` and `{}` in fields that Kubernetes writes only when they hold something, `[]` and scalars
//!   where a schema has `items` or `dependencies`;
//! - `metadata.namespace` of manifests: namespaced objects go to the install namespace;
//! - `spec.conversion` of a CRD for which the CSV defines a conversion webhook, and its annotation that names the CA to
//!   trust;
//! - `revisionHistoryLimit` of deployments, which is always 1;
//! - volumes and mounts in the place of those for the certificates of webhooks;
//! - the rest of the CSV, which describes the operator and is not applied.
//!
//! Quantities, points in time and base64 may be written in another form.
//!
//! The search serves `cargo xtask render-loss` alone. It reads the CSV itself, so that it also finds a value that parsing loses.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use olm_text::object::metadata_name;
use serde_json::Value;

use crate::parse::{CSV_KIND, manifest_objects};
use crate::render::CERTIFICATE_VOLUMES;
use crate::shape::{CRD, DEPLOYMENT_SPEC, Presence, Shape, is_empty, shapes};

/// A value of a manifest that no rendered object has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Kind and name of the object.
    pub object: String,
    /// The path inside the object; empty when the whole object is missing.
    pub path: String,
    /// The start of the value.
    pub value: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\t{}\t{}", self.object, self.path, self.value)
    }
}

/// Compares the manifests of `files` with the objects `rendered` from them. Unreadable files have no values.
pub fn losses(files: &BTreeMap<String, Vec<u8>>, rendered: &[Value]) -> Vec<Loss> {
    let mut csv = Value::Null;
    let mut out = Vec::new();
    let mut own = Vec::new();
    for object in manifest_objects(files) {
        if text(&object, "kind") == CSV_KIND {
            csv = object;
        } else {
            own.push(object);
        }
    }
    let converted: BTreeSet<&str> = list(&csv, "/spec/webhookdefinitions")
        .filter(|webhook| text(webhook, "type") == "ConversionWebhook")
        .flat_map(|webhook| list(webhook, "/conversionCRDs").filter_map(Value::as_str))
        .collect();
    for object in &own {
        let (kind, name) = (text(object, "kind"), metadata_name(object));
        let mut comparison = Comparison::new(format!("{kind} {name}"));
        let shape = if kind == "CustomResourceDefinition" {
            if converted.contains(name) {
                comparison.replaced.extend(CONVERSION.map(ToOwned::to_owned));
            }
            Shape::Named(CRD.to_owned())
        } else {
            comparison.replaced.insert("/metadata/namespace".to_owned());
            Shape::Any
        };
        out.extend(comparison.fewest_losses(&shape, object, named(rendered, kind, name)));
    }
    deployments(&csv, rendered, &mut out);
    rules(&csv, rendered, &mut out);
    webhooks(&csv, rendered, &mut out);
    out
}

fn deployments(csv: &Value, rendered: &[Value], out: &mut Vec<Loss>) {
    let serving: BTreeSet<&str> = list(csv, "/spec/webhookdefinitions")
        .chain(list(csv, "/spec/apiservicedefinitions/owned"))
        .map(|definition| text(definition, "deploymentName"))
        .collect();
    for deployment in list(csv, "/spec/install/spec/deployments") {
        let name = text(deployment, "name");
        let mut comparison = Comparison::new(format!("Deployment {name}"));
        comparison.replaced.insert("/revisionHistoryLimit".to_owned());
        if serving.contains(name) {
            comparison
                .replaced_volumes
                .extend(CERTIFICATE_VOLUMES.iter().map(|volume| volume.0));
            let mounts = list(deployment, "/spec/template/spec/containers")
                .flat_map(|container| list(container, "/volumeMounts"));
            let covered = |mount: &&Value| {
                let path = text(mount, "mountPath");
                CERTIFICATE_VOLUMES.iter().any(|volume| volume.1 == path)
            };
            comparison
                .replaced_volumes
                .extend(mounts.filter(covered).map(|mount| text(mount, "name")));
        }
        let spec = deployment.get("spec").unwrap_or(&Value::Null);
        let got = named(rendered, "Deployment", name).filter_map(|object| object.get("spec"));
        out.extend(comparison.fewest_losses(&Shape::Named(DEPLOYMENT_SPEC.to_owned()), spec, got));
    }
}

/// Compares the rules of each permission with the role that holds all of them.
fn rules(csv: &Value, rendered: &[Value], out: &mut Vec<Loss>) {
    let shape = Shape::List(Box::new(Shape::Named("CsvRule".to_owned())));
    for key in ["permissions", "clusterPermissions"] {
        let permissions = list(csv, &format!("/spec/install/spec/{key}"));
        for (at, permission) in permissions.enumerate() {
            let comparison = Comparison::new(format!("{CSV_KIND} {key}/{at}"));
            let roles = rendered
                .iter()
                .filter(|object| matches!(text(object, "kind"), "Role" | "ClusterRole"));
            let got = roles.filter_map(|role| role.get("rules"));
            if let Some(given) = permission.get("rules").filter(|rules| !is_empty(rules)) {
                out.extend(comparison.fewest_losses(&shape, given, got));
            }
        }
    }
}

fn webhooks(csv: &Value, rendered: &[Value], out: &mut Vec<Loss>) {
    for webhook in list(csv, "/spec/webhookdefinitions") {
        let kind = match text(webhook, "type") {
            "MutatingAdmissionWebhook" => "MutatingWebhookConfiguration",
            "ValidatingAdmissionWebhook" => "ValidatingWebhookConfiguration",
            _ => continue,
        };
        let full = text(webhook, "generateName");
        let name = full.strip_suffix('-').unwrap_or(full);
        let mut comparison = Comparison::new(format!("{kind} {name}"));
        // These fields determine the name, the service and its port.
        let elsewhere = [
            "type",
            "generateName",
            "deploymentName",
            "containerPort",
            "targetPort",
            "webhookPath",
        ];
        comparison
            .replaced
            .extend(elsewhere.iter().map(|field| format!("/{field}")));
        comparison.replaced.insert("/conversionCRDs".to_owned());
        if kind == "ValidatingWebhookConfiguration" {
            comparison.replaced.insert("/reinvocationPolicy".to_owned());
        }
        let got = named(rendered, kind, name).filter_map(|object| object.pointer("/webhooks/0"));
        out.extend(comparison.fewest_losses(&Shape::Named("CsvWebhook".to_owned()), webhook, got));
    }
}

fn named<'a>(objects: &'a [Value], kind: &'a str, name: &'a str) -> impl Iterator<Item = &'a Value> {
    let wanted = move |object: &&Value| text(object, "kind") == kind && metadata_name(object) == name;
    objects.iter().filter(wanted)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// Paths of a CRD that rendering sets for a conversion webhook.
const CONVERSION: [&str; 3] = [
    "/spec/conversion",
    "/metadata/annotations/cert-manager.io/inject-ca-from",
    "/metadata/annotations/service.beta.openshift.io/inject-cabundle",
];

/// Maximum number of characters of a lost value.
const MAX_SHOWN: usize = 80;

/// The comparison of one object.
struct Comparison<'a> {
    object: String,
    /// Paths that rendering replaces.
    replaced: BTreeSet<String>,
    /// Names of the volumes and mounts that rendering replaces.
    replaced_volumes: BTreeSet<&'a str>,
}

impl Comparison<'_> {
    fn new(object: String) -> Self {
        Self {
            object,
            replaced: BTreeSet::new(),
            replaced_volumes: BTreeSet::new(),
        }
    }

    /// Returns the losses against the candidate with the fewest losses.
    fn fewest_losses<'v>(
        &self,
        shape: &Shape,
        given: &Value,
        candidates: impl Iterator<Item = &'v Value>,
    ) -> Vec<Loss> {
        let lost = candidates.map(|got| {
            let mut out = Vec::new();
            self.compare(shape, given, got, "", &mut out);
            out
        });
        lost.min_by_key(Vec::len)
            .unwrap_or_else(|| vec![self.loss("", given)])
    }

    fn loss(&self, path: &str, value: &Value) -> Loss {
        Loss {
            object: self.object.clone(),
            path: path.to_owned(),
            value: value.to_string().chars().take(MAX_SHOWN).collect(),
        }
    }

    fn compare(&self, shape: &Shape, given: &Value, got: &Value, path: &str, out: &mut Vec<Loss>) {
        match (shape, given, got) {
            (
                Shape::Named(name)
                | Shape::NamedOrBool(name)
                | Shape::NamedOrList(name)
                | Shape::NamedOrTexts(name),
                Value::Object(map),
                Value::Object(got),
            ) => {
                for (key, field) in shapes().fields(name) {
                    let path = format!("{path}/{key}");
                    let Some(value) = map.get(key).filter(|value| !value.is_null()) else {
                        continue;
                    };
                    if field.presence == Presence::UnlessEmpty && is_empty(value)
                        || self.replaced.contains(&path)
                    {
                        continue;
                    }
                    match got.get(key) {
                        Some(got) => self.compare(&field.shape, value, got, &path, out),
                        None => out.push(self.loss(&path, value)),
                    }
                }
            }
            (Shape::Any | Shape::Map(_), Value::Object(map), Value::Object(got)) => {
                let inner = if let Shape::Map(inner) = shape {
                    inner
                } else {
                    shape
                };
                for (key, value) in map {
                    let path = format!("{path}/{key}");
                    match got.get(key) {
                        _ if self.replaced.contains(&path) => {}
                        Some(got) => self.compare(inner, value, got, &path, out),
                        None => out.push(self.loss(&path, value)),
                    }
                }
            }
            (Shape::List(item), Value::Array(given), Value::Array(got)) => {
                self.items(item, given, got, path, out);
            }
            (Shape::NamedOrList(name), Value::Array(given), Value::Array(got)) => {
                self.items(&Shape::Named(name.clone()), given, got, path, out);
            }
            (Shape::NamedOrTexts(_), Value::Array(given), Value::Array(got)) => {
                self.items(&Shape::Str, given, got, path, out);
            }
            (Shape::Any, Value::Array(given), Value::Array(got)) => self.items(shape, given, got, path, out),
            (Shape::NamedOrList(_) | Shape::NamedOrTexts(_), _, Value::Null) if !given.is_object() => {}
            (Shape::Quantity | Shape::Time | Shape::Bytes, _, Value::String(_)) => {}
            (Shape::Any, _, _)
            | (_, Value::String(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_), _) => {
                if !same(given, got) {
                    out.push(self.loss(path, given));
                }
            }
            (_, Value::Number(_), _) if !same(given, got) => out.push(self.loss(path, given)),
            // Null in a list or map is the empty value of its shape.
            (_, Value::Null | Value::Number(_), _) => {}
        }
    }

    /// Compares items by index; volumes and their mounts by name.
    fn items(&self, shape: &Shape, given: &[Value], got: &[Value], path: &str, out: &mut Vec<Loss>) {
        let by_name = path.ends_with("/volumes") || path.ends_with("/volumeMounts");
        for (at, value) in given.iter().enumerate() {
            let path = format!("{path}/{at}");
            if by_name {
                let name = text(value, "name");
                if !self.replaced_volumes.contains(name) {
                    let same_name = got.iter().filter(|item| text(item, "name") == name);
                    let mut least: Option<Vec<Loss>> = None;
                    for item in same_name {
                        let mut lost = Vec::new();
                        self.compare(shape, value, item, &path, &mut lost);
                        if least.as_ref().is_none_or(|least| lost.len() < least.len()) {
                            least = Some(lost);
                        }
                    }
                    out.extend(least.unwrap_or_else(|| vec![self.loss(&path, value)]));
                }
                continue;
            }
            match got.get(at) {
                Some(got) => self.compare(shape, value, got, &path, out),
                None => out.push(self.loss(&path, value)),
            }
        }
    }
}

/// Returns true if the values are equal; numbers are equal whatever their notation.
fn same(one: &Value, other: &Value) -> bool {
    one == other || one.is_number() && one.as_f64() == other.as_f64()
}
