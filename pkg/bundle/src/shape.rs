//! The Kubernetes types of the CSV's deployments, as tables.
//!
//! A CSV's deployments have always been read into typed structures and written out again, so that
//! unknown fields vanish, empty optional ones are left out and quantities are normalised. Clients
//! compare what comes out; [`Shapes::normalize`] has the same effect, driven by the API's own schema.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::{Map, Number, Value};

use crate::quantity;

mod tables;

pub(crate) use tables::{CRD, CSV};

/// Name of the `apps/v1` `DeploymentSpec` in the tables.
pub(crate) const DEPLOYMENT_SPEC: &str = "io.k8s.api.apps.v1.DeploymentSpec";

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Any,
    Str,
    Bool,
    Int,
    Int64,
    Float,
    Quantity,
    IntOrString,
    Time,
    List(Box<Shape>),
    Map(Box<Shape>),
    Named(String),
    /// The structure, or a boolean.
    NamedOrBool(String),
    /// The structure, or a list of it.
    NamedOrList(String),
    /// The structure, or a list of texts.
    NamedOrTexts(String),
}

/// One field of a structure.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub shape: Shape,
    pub required: bool,
}

/// Structures by the names of the API's schema.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    types: Types,
}

type Types = BTreeMap<String, BTreeMap<String, Field>>;

/// The tables for everything reachable from a `DeploymentSpec`; made once.
pub(crate) fn shapes() -> &'static Shapes {
    static SHAPES: OnceLock<Shapes> = OnceLock::new();
    SHAPES.get_or_init(|| {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let _ = generator.subschema_for::<DeploymentSpec>();
        let definitions = generator.take_definitions(true);
        let mut types: BTreeMap<_, _> = definitions
            .iter()
            .map(|(name, schema)| (name.clone(), fields(schema)))
            .collect();
        types.extend(tables::types());
        Shapes { types }
    })
}

fn fields(schema: &Value) -> BTreeMap<String, Field> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|list| list.iter().any(|item| item.as_str() == Some(name)));
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            (
                name.clone(),
                Field {
                    shape: shape(schema),
                    required: is_required(name),
                },
            )
        })
        .collect()
}

fn shape(schema: &Value) -> Shape {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = reference.rsplit('/').next().unwrap_or(reference);
        return match name.rsplit('.').next().unwrap_or(name) {
            "Quantity" => Shape::Quantity,
            "IntOrString" => Shape::IntOrString,
            "Time" | "MicroTime" => Shape::Time,
            "FieldsV1" => Shape::Any,
            _ => Shape::Named(name.to_owned()),
        };
    }
    let nested = |key: &str| Box::new(schema.get(key).map_or(Shape::Any, shape));
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => Shape::Str,
        Some("boolean") => Shape::Bool,
        Some("integer") if schema.get("format").and_then(Value::as_str) == Some("int64") => Shape::Int64,
        Some("integer") => Shape::Int,
        Some("number") => Shape::Float,
        Some("array") => Shape::List(nested("items")),
        Some("object") => Shape::Map(nested("additionalProperties")),
        _ => Shape::Any,
    }
}

impl Shapes {
    /// The fields of the structure `name`; empty when there is no such structure.
    pub(crate) fn fields(&self, name: &str) -> impl Iterator<Item = (&String, &Field)> {
        self.types.get(name).into_iter().flatten()
    }

    /// `value` as it is after having gone through the structure `name`. The error is upstream's.
    pub(crate) fn normalize(&self, name: &str, value: &Value) -> Result<Value, String> {
        self.structure(name, value).map(Value::Object)
    }

    /// `value` as it is after having gone through `shape`.
    pub(crate) fn convert(&self, shape: &Shape, value: &Value) -> Result<Value, String> {
        let unrecognized = |kind: &str| Err(format!("unrecognized type: {kind}"));
        match (shape, value) {
            (Shape::Any, _)
            | (Shape::Str, Value::String(_))
            | (Shape::Bool | Shape::NamedOrBool(_), Value::Bool(_))
            | (Shape::Time, Value::String(_) | Value::Null)
            | (Shape::IntOrString, Value::String(_) | Value::Number(_)) => Ok(value.clone()),
            (Shape::Str, Value::Null) => Ok("".into()),
            (Shape::Bool, Value::Null) => Ok(false.into()),
            (Shape::Int | Shape::Int64 | Shape::Float | Shape::IntOrString, Value::Null) => Ok(0.into()),
            (Shape::Float, Value::Number(number)) => Ok(as_float(number)),
            (Shape::Int | Shape::Int64, Value::Number(number)) if number.is_i64() || number.is_u64() => {
                Ok(value.clone())
            }
            (Shape::Quantity, _) => quantity::canonical(value)
                .map(Value::String)
                .map_err(ToOwned::to_owned),
            (Shape::List(_) | Shape::Map(_), Value::Null) => Ok(Value::Null),
            (Shape::List(item), Value::Array(items)) => items
                .iter()
                .map(|value| self.convert(item, value))
                .collect::<Result<_, _>>()
                .map(Value::Array),
            (Shape::Map(item), Value::Object(map)) => {
                let convert = |(key, value): (&String, &Value)| Ok((key.clone(), self.convert(item, value)?));
                map.iter()
                    .map(convert)
                    .collect::<Result<_, String>>()
                    .map(Value::Object)
            }
            (Shape::NamedOrTexts(_), Value::Array(_)) => {
                self.convert(&Shape::List(Box::new(Shape::Str)), value)
            }
            (Shape::NamedOrList(name), Value::Array(_)) => {
                self.convert(&Shape::List(Box::new(Shape::Named(name.clone()))), value)
            }
            (
                Shape::Named(name)
                | Shape::NamedOrBool(name)
                | Shape::NamedOrList(name)
                | Shape::NamedOrTexts(name),
                _,
            ) => self.normalize(name, value),
            (Shape::Str, _) => unrecognized("string"),
            (Shape::Bool, _) => unrecognized("bool"),
            (Shape::Int, _) => unrecognized("int32"),
            (Shape::Int64, _) => unrecognized("int64"),
            (Shape::Float, _) => unrecognized("float64"),
            (Shape::IntOrString, _) => Err("IntOrString must be a number or a string".to_owned()),
            (Shape::Time, _) => Err("a time must be a string in RFC 3339 form".to_owned()),
            (Shape::List(_), _) => Err(format!("cannot restore slice from {}", go_kind(value))),
            (Shape::Map(_), _) => Err(format!("cannot restore map from {}", go_kind(value))),
        }
    }

    fn structure(&self, name: &str, value: &Value) -> Result<Map<String, Value>, String> {
        let empty = Map::new();
        let map = match value {
            Value::Object(map) => map,
            Value::Null => &empty,
            _ => return Err(format!("cannot restore struct from: {}", go_kind(value))),
        };
        let mut out = Map::new();
        for (field, Field { shape, required }) in self.fields(name) {
            let given = map.get(field).filter(|value| !value.is_null());
            let always = *required || is_embedded(name, field);
            match given {
                Some(value) => {
                    let value = self.convert(shape, value)?;
                    if always || !is_left_out(name, field, shape, &value) {
                        out.insert(field.clone(), value);
                    }
                }
                None if always && is_pointer(name, field) => {
                    out.insert(field.clone(), Value::Null);
                }
                None if always => {
                    out.insert(field.clone(), self.convert(shape, &Value::Null)?);
                }
                None => {}
            }
        }
        Ok(out)
    }
}

/// Structures held by value: written even when nothing is in them.
fn is_embedded(type_name: &str, field: &str) -> bool {
    let short = type_name.rsplit('.').next().unwrap_or(type_name);
    matches!(
        (short, field),
        (
            "Container" | "EphemeralContainer" | "PersistentVolumeClaimSpec",
            "resources"
        ) | ("DeploymentSpec", "strategy")
            | (
                "PodTemplateSpec" | "PersistentVolumeClaimTemplate" | "Crd",
                "metadata" | "spec"
            )
            | ("Crd", "status")
    )
}

/// Required, yet a pointer: absent, it is written as null.
fn is_pointer(type_name: &str, field: &str) -> bool {
    type_name == DEPLOYMENT_SPEC && field == "selector"
}

/// Whether an optional field with this value is left out. Fields that are pointers in the API keep
/// their zero value, the others lose it.
fn is_left_out(type_name: &str, field: &str, shape: &Shape, value: &Value) -> bool {
    let short = type_name.rsplit('.').next().unwrap_or(type_name);
    match (shape, value) {
        (_, Value::Null) => true,
        (_, Value::Array(items)) => items.is_empty(),
        (Shape::Map(_), Value::Object(map)) => map.is_empty(),
        (Shape::Str, Value::String(text)) if text.is_empty() => !keeps_empty_text(short, field),
        (Shape::Bool, Value::Bool(false)) => {
            matches!(
                field,
                "stdin"
                    | "stdinOnce"
                    | "tty"
                    | "hostNetwork"
                    | "hostPID"
                    | "hostIPC"
                    | "paused"
                    | "sslEnabled"
                    | "chapAuthDiscovery"
                    | "chapAuthSession"
                    | "preserveUnknownFields"
                    | "deprecated"
                    | "exclusiveMaximum"
                    | "exclusiveMinimum"
                    | "uniqueItems"
                    | "nullable"
                    | "x-kubernetes-embedded-resource"
                    | "x-kubernetes-int-or-string"
            ) || field == "readOnly" && !matches!(short, "CSIVolumeSource" | "AzureDiskVolumeSource")
        }
        (Shape::Int | Shape::Int64, Value::Number(number)) if number.as_i64() == Some(0) => {
            matches!(
                field,
                "hostPort"
                    | "initialDelaySeconds"
                    | "timeoutSeconds"
                    | "periodSeconds"
                    | "successThreshold"
                    | "failureThreshold"
                    | "partition"
                    | "minReadySeconds"
                    | "generation"
            ) || (short, field) == ("CrdColumn", "priority")
        }
        _ => false,
    }
}

fn keeps_empty_text(short: &str, field: &str) -> bool {
    matches!(
        field,
        "runtimeClassName"
            | "preemptionPolicy"
            | "hostnameOverride"
            | "storageClassName"
            | "volumeMode"
            | "mountPropagation"
            | "recursiveReadOnly"
            | "localhostProfile"
            | "procMount"
            | "gmsaCredentialSpecName"
            | "gmsaCredentialSpec"
            | "runAsUserName"
            | "cachingMode"
            | "service"
            | "fsGroupChangePolicy"
            | "supplementalGroupsPolicy"
            | "seLinuxChangePolicy"
            | "resourceClaimName"
            | "resourceClaimTemplateName"
            | "nodeAffinityPolicy"
            | "nodeTaintsPolicy"
            | "stopSignal"
            | "initiatorName"
            | "apiGroup"
            | "volumeAttributesClassName"
    ) || matches!(
        (short, field),
        ("Container", "restartPolicy")
            | ("HostPathVolumeSource", "type")
            | ("PodDNSConfigOption", "value")
            | ("AzureDiskVolumeSource", "fsType" | "kind")
            | ("CSIVolumeSource", "fsType")
            | ("ClusterTrustBundleProjection", "name" | "signerName")
            | ("CrdVersion", "deprecationWarning")
            | ("CrdScale", "labelSelectorPath")
            | ("CrdService", "path")
            | ("CrdClientConfig", "url")
            | (
                "CrdSchema",
                "$ref" | "x-kubernetes-list-type" | "x-kubernetes-map-type"
            )
            | ("CrdRule", "reason")
    )
}

/// The API keeps these as 64-bit floats: integers that have no exact counterpart come out rounded.
fn as_float(number: &Number) -> Value {
    let rounded = number
        .as_f64()
        .filter(|float| float.fract() == 0.0)
        .map(|float| float.to_string());
    let whole = rounded.and_then(|text| {
        text.parse::<i64>()
            .map(Number::from)
            .or_else(|_| text.parse::<u64>().map(Number::from))
            .ok()
    });
    Value::Number(whole.unwrap_or_else(|| number.clone()))
}

/// The kind of a decoded JSON value, in the words of upstream's converter.
pub(crate) fn go_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}
