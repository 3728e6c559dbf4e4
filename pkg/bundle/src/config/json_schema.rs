//! JSON Schema (2020-12) of `spec.config.inline`, for editors and other tools.
//!
//! The schema states the rules of [`schema::check`](super::schema); a test compares the two.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use k8s_openapi::api::apps::v1::DeploymentSpec;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::schema::{MAX_NAMESPACE, MAX_NAMESPACES, PATTERN};
use super::{WATCH_NAMESPACE_SELECTOR, WATCH_NAMESPACES, deployment, namespace_selector};
use crate::model::InstallMode;
use crate::shape::Shape;

/// Inputs of the schema.
#[derive(Clone, Debug)]
pub struct ConfigSchema<'a> {
    /// Title of the schema, such as `argocd-operator 0.9.0`.
    pub title: &'a str,
    /// The install modes the bundle supports, as its CSV names them.
    pub modes: &'a [InstallMode],
    /// The install namespace; if it is absent, only the descriptions state the rules that depend on it.
    pub install_namespace: Option<&'a str>,
    /// True if `deploymentConfig` is a known field.
    pub deployment_config: bool,
}

/// Returns the schema of a bundle's configuration.
pub fn config_schema(of: &ConfigSchema<'_>) -> Value {
    let mut properties = Map::new();
    let mut out = Map::new();
    let supports = |mode| of.modes.contains(&mode);
    let (own, single) = (
        supports(InstallMode::OwnNamespace),
        supports(InstallMode::SingleNamespace),
    );
    let (all, multi) = (
        supports(InstallMode::AllNamespaces),
        supports(InstallMode::MultiNamespace),
    );
    if own || single {
        properties.insert("watchNamespace".to_owned(), watch_namespace(of, own, single, all));
    }
    if multi {
        let mut several = json!({
            "description": "The namespaces that the operator watches, instead of watchNamespace.",
            "type": "array", "minItems": 1, "maxItems": MAX_NAMESPACES, "uniqueItems": true,
        });
        if let Some(map) = several.as_object_mut() {
            map.insert("items".to_owned(), name());
        }
        properties.insert(WATCH_NAMESPACES.to_owned(), several);
        properties.insert(WATCH_NAMESPACE_SELECTOR.to_owned(), namespace_selector::schema());
        let one = (own || single).then_some("watchNamespace");
        let fields: Vec<&str> = one
            .into_iter()
            .chain([WATCH_NAMESPACES, WATCH_NAMESPACE_SELECTOR])
            .collect();
        if all {
            out.insert("not".to_owned(), json!({"anyOf": pairs(&fields)}));
        } else {
            let each: Vec<Value> = fields.iter().map(|field| json!({"required": [field]})).collect();
            out.insert("oneOf".to_owned(), each.into());
        }
    } else if (own || single) && !all {
        out.insert("required".to_owned(), json!(["watchNamespace"]));
    }
    if of.deployment_config {
        let mut definitions = Map::new();
        properties.insert("deploymentConfig".to_owned(), deployment_config(&mut definitions));
        out.insert("$defs".to_owned(), Value::Object(definitions));
    }
    out.insert(
        "$schema".to_owned(),
        "https://json-schema.org/draft/2020-12/schema".into(),
    );
    out.insert(
        "title".to_owned(),
        format!("Configuration of {}", of.title).into(),
    );
    out.insert("type".to_owned(), "object".into());
    out.insert("additionalProperties".to_owned(), false.into());
    out.insert("properties".to_owned(), Value::Object(properties));
    Value::Object(out)
}

/// Returns schemas of configurations with two of `fields`, one for each pair.
fn pairs(fields: &[&str]) -> Vec<Value> {
    let after = |at: usize| fields.iter().skip(at + 1);
    let pairs = fields
        .iter()
        .enumerate()
        .flat_map(|(at, one)| after(at).map(move |other| (one, other)));
    pairs
        .map(|(one, other)| json!({"required": [one, other]}))
        .collect()
}

fn name() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": MAX_NAMESPACE, "pattern": PATTERN})
}

fn watch_namespace(of: &ConfigSchema<'_>, own: bool, single: bool, all: bool) -> Value {
    let mut rule = name();
    let mut text = "The namespace that the operator watches.".to_owned();
    match (own, single) {
        (true, false) => text.push_str(" It must be the namespace that the operator is installed to."),
        (false, _) => text.push_str(" It must differ from the namespace that the operator is installed to."),
        (true, true) => {}
    }
    if all {
        text.push_str(" If it is absent, the operator watches all namespaces.");
    }
    if let (Some(map), Some(namespace)) = (rule.as_object_mut(), of.install_namespace) {
        match (own, single) {
            (true, false) => drop(map.insert("const".to_owned(), namespace.into())),
            (false, true) => drop(map.insert("not".to_owned(), json!({"const": namespace}))),
            _ => {}
        }
    }
    if all {
        return json!({"description": text, "anyOf": [{"type": "null"}, rule]});
    }
    if let Some(map) = rule.as_object_mut() {
        map.insert("description".to_owned(), text.into());
    }
    rule
}

/// Returns the schema of the field and adds the Kubernetes types that it refers to, to `definitions`.
fn deployment_config(definitions: &mut Map<String, Value>) -> Value {
    let mut properties = Map::new();
    let mut due: Vec<String> = Vec::new();
    for (field, shape) in deployment::fields() {
        let mut schema = shape_schema(&shape, &mut due);
        if let Some(map) = schema.as_object_mut() {
            map.insert("description".to_owned(), deployment::describe(field).into());
        }
        properties.insert(field.to_owned(), schema);
    }
    let mut seen = BTreeSet::new();
    while let Some(name) = due.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        if let Some(schema) = kubernetes().get(&name) {
            references(schema, &mut due);
            definitions.insert(name, schema.clone());
        }
    }
    json!({
        "description": "Changes to all deployments of the operator. Init containers are not changed.",
        "type": "object", "additionalProperties": false, "properties": properties,
    })
}

fn shape_schema(shape: &Shape, due: &mut Vec<String>) -> Value {
    match shape {
        Shape::List(item) => json!({"type": "array", "items": shape_schema(item, due)}),
        Shape::Map(item) => json!({"type": "object", "additionalProperties": shape_schema(item, due)}),
        Shape::Named(name) => {
            due.push(name.clone());
            json!({"$ref": format!("#/$defs/{name}")})
        }
        _ => json!({"type": "string"}),
    }
}

/// Adds the names of the definitions that `schema` refers to. Schemas of the API are only a few levels deep.
fn references(schema: &Value, due: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(name) = map
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|text| text.rsplit('/').next())
            {
                due.push(name.to_owned());
            }
            map.values().for_each(|value| references(value, due));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, due)),
        _ => {}
    }
}

/// Returns the API's own schemas of everything reachable from a `DeploymentSpec`; created once.
fn kubernetes() -> &'static Map<String, Value> {
    static DEFINITIONS: OnceLock<Map<String, Value>> = OnceLock::new();
    DEFINITIONS.get_or_init(|| {
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        let _ = generator.subschema_for::<DeploymentSpec>();
        let mut definitions = generator.take_definitions(true);
        for (name, schema) in &mut definitions {
            if name.ends_with(".Quantity") || name.ends_with(".IntOrString") {
                // Both forms are accepted, and users write numbers.
                let text = schema.get("description").cloned();
                *schema =
                    json!({"type": ["string", "number"], "description": text.unwrap_or_else(|| "".into())});
            }
        }
        definitions
    })
}
