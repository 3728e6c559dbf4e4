//! Fields of Kubernetes types, as tables.
//!
//! Upstream reads a CSV's deployments into typed structures and writes them again. Unknown fields disappear, empty
//! optional fields are omitted, and quantities are normalised. [`Shapes::normalize`] has the same effect, from the
//! API's own schema.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::Value;

mod convert;
mod presence;
mod scalar;
mod tables;

pub(crate) use presence::{Presence, is_empty};
pub(crate) use scalar::{go_kind, integer, json_kind};
pub(crate) use tables::{CRD, CSV};

/// Name of the `apps/v1` `DeploymentSpec` in the tables.
pub(crate) const DEPLOYMENT_SPEC: &str = "io.k8s.api.apps.v1.DeploymentSpec";

/// Name of the metadata of every object in the tables.
pub(crate) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Type of a field's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Any,
    Str,
    /// Base64.
    Bytes,
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
    /// A structure or a boolean.
    NamedOrBool(String),
    /// A structure or a list of it.
    NamedOrList(String),
    /// A structure or a list of texts.
    NamedOrTexts(String),
}

/// Field of a structure.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub shape: Shape,
    pub required: bool,
    pub presence: Presence,
}

/// Structures by their names in the API's schema.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    types: Types,
}

type Types = BTreeMap<String, BTreeMap<String, Field>>;

/// Returns the tables of everything reachable from a `DeploymentSpec`; created once.
pub(crate) fn shapes() -> &'static Shapes {
    static SHAPES: OnceLock<Shapes> = OnceLock::new();
    SHAPES.get_or_init(|| {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let _ = generator.subschema_for::<DeploymentSpec>();
        let definitions = generator.take_definitions(true);
        let mut types: BTreeMap<_, _> = definitions
            .iter()
            .map(|(name, schema)| (name.clone(), fields(name, schema)))
            .collect();
        types.extend(tables::types());
        Shapes { types }
    })
}

fn fields(type_name: &str, schema: &Value) -> BTreeMap<String, Field> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|list| list.iter().any(|item| item.as_str() == Some(name)));
    schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let (shape, required) = (shape(schema), is_required(name));
            let presence = presence::of(type_name, name, &shape, required);
            let field = Field {
                shape,
                required,
                presence,
            };
            (name.clone(), field)
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
    /// Returns the fields of the structure `name`; empty if it is unknown.
    pub(crate) fn fields(&self, name: &str) -> impl Iterator<Item = (&String, &Field)> {
        self.types.get(name).into_iter().flatten()
    }
}

#[cfg(test)]
mod tests;
