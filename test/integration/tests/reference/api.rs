//! Page about the fields of the three kinds, from the schemas of their CRDs.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::Value;

use crate::{code, head, row, table};

/// Keywords of schemas that the page shows as constraints, with their names on the page.
const CONSTRAINTS: [(&str, &str); 9] = [
    ("default", "default"),
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("minLength", "minimum length"),
    ("maxLength", "maximum length"),
    ("minItems", "minimum items"),
    ("maxItems", "maximum items"),
    ("format", "format"),
    ("pattern", "pattern"),
];

pub(crate) fn page() -> Result<String> {
    let mut page = head(
        "API",
        "Fields of `olm.operatorframework.io/v1`, from the schemas of the CRDs. `[]` stands for an item of a list. The rules of the \
         schemas (`x-kubernetes-validations`) are in `config/crd`.",
    );
    for crd in olm_api::crds() {
        writeln!(page, "\n## {}", crd.spec.names.kind)?;
        for version in &crd.spec.versions {
            let schema = version
                .schema
                .as_ref()
                .and_then(|schema| schema.open_api_v3_schema.as_ref());
            let schema = serde_json::to_value(schema)?;
            write!(page, "\n{}\n\n", text(&schema["description"]))?;
            page += &table(&["field", "type", "meaning"]);
            for part in ["spec", "status"] {
                field(&mut page, part, &schema["properties"][part], false)?;
            }
        }
    }
    Ok(page)
}

/// Appends a field and the fields below it.
fn field(page: &mut String, path: &str, schema: &Value, required: bool) -> Result<()> {
    let mut meaning = text(&schema["description"]).to_owned();
    if required {
        meaning += " Required.";
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(|value| code(&shown(value))).collect();
        write!(meaning, " Values: {}.", values.join(", "))?;
    }
    let constraints: Vec<String> = CONSTRAINTS
        .iter()
        .filter(|(key, _)| !schema[*key].is_null())
        .map(|(key, words)| format!("{words} {}", code(&shown(&schema[*key]))))
        .collect();
    if !constraints.is_empty() {
        write!(meaning, " ({})", constraints.join(", "))?;
    }
    *page += &row(&[&code(path), &type_of(schema), &meaning]);
    below(page, path, schema)
}

/// Appends the members of an object, or of the items of a list.
fn below(page: &mut String, path: &str, schema: &Value) -> Result<()> {
    if schema["items"].is_object() {
        below(page, &format!("{path}[]"), &schema["items"])?;
    }
    let required = schema["required"].as_array();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let required = required.is_some_and(|required| required.iter().any(|other| other == name));
        field(page, &format!("{path}.{name}"), member, required)?;
    }
    Ok(())
}

fn type_of(schema: &Value) -> String {
    if schema["x-kubernetes-int-or-string"] == true {
        return "integer or string".to_owned();
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", type_of(&schema["items"])),
        Some("object") if schema["additionalProperties"].is_object() => {
            format!("map of {}", type_of(&schema["additionalProperties"]))
        }
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the value of a constraint as text. Whole numbers have no fraction.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => {
            let text = other.to_string();
            text.strip_suffix(".0").map_or(text.clone(), ToOwned::to_owned)
        }
    }
}
