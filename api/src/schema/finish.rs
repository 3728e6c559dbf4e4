//! Last step of a derived definition.
//!
//! The derives treat a Go-style optional field as nullable and the spec as required, and omit the fields that every
//! object has. This step makes fields not nullable (the API server then drops a null), sets the required members of the
//! root, describes `apiVersion`, `kind` and `metadata`, joins the lines of descriptions, and sets the default status.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::json;

/// Finishes `crd`; `required` are the required members of the root.
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

/// Sets the default status of a new object, with `observedGeneration` -1, so that tools never consider the object done.
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
