//! The last step over a derived definition.
//!
//! The derives treat a Go-style optional field as nullable and the spec as required, and leave out
//! the fields every object has. Here: nothing is nullable (the API server then drops a null, as if the
//! field were absent), the root requires what it is told to, `apiVersion`, `kind` and `metadata` are
//! described, the lines of a description are joined, and an object that nobody has looked at yet says so.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::json;

/// Finishes `crd`; `required` are the required members of the object itself.
pub(super) fn definition(mut crd: CustomResourceDefinition, required: &[&str]) -> CustomResourceDefinition {
    let names = &mut crd.spec.names;
    names.list_kind = Some(format!("{}List", names.kind));
    // Empty lists are left out: they say nothing, and would differ from what the API server returns.
    names.short_names = None;
    names.categories = None;
    for version in &mut crd.spec.versions {
        let schema = version
            .schema
            .as_mut()
            .and_then(|v| v.open_api_v3_schema.as_mut());
        if let Some(root) = schema {
            tidy(root);
            root.required =
                (!required.is_empty()).then(|| required.iter().map(ToString::to_string).collect());
            add_object_fields(root);
            add_unobserved(root);
        }
    }
    crd
}

fn add_object_fields(root: &mut JSONSchemaProps) {
    let field = |type_: &str, description: Option<&str>| JSONSchemaProps {
        type_: Some(type_.to_owned()),
        description: description.map(str::to_owned),
        ..JSONSchemaProps::default()
    };
    let properties = root.properties.get_or_insert_default();
    let version = "Group and version of the schema this object is written in.";
    let kind = "Kind of this object.";
    properties.insert("apiVersion".to_owned(), field("string", Some(version)));
    properties.insert("kind".to_owned(), field("string", Some(kind)));
    properties.insert("metadata".to_owned(), field("object", None));
}

/// A status that nobody has written yet is of no generation, so that tools which read `observedGeneration` never take
/// a new object for one that is done.
fn add_unobserved(root: &mut JSONSchemaProps) {
    let properties = root.properties.get_or_insert_default();
    if let Some(status) = properties.get_mut("status") {
        status.default = Some(JSON(json!({ "observedGeneration": -1 })));
    }
}

fn tidy(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.description = schema.description.take().map(|text| text.replace('\n', " "));
    for property in schema.properties.iter_mut().flat_map(|p| p.values_mut()) {
        tidy(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => tidy(item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(tidy),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &mut schema.additional_properties {
        tidy(value);
    }
}
