//! `metadata/properties.yaml` joins the CSV's own properties.

use serde_json::{Map, Value};

use crate::model::{Csv, PROPERTIES_ANNOTATION};
use crate::{ParseError, json_text, yaml};

/// Appends the file's properties to the annotation and writes it as compact JSON. Without any
/// properties in the file the annotation stays untouched.
pub(super) fn merge(csv: &mut Csv, path: &str, bytes: &[u8]) -> Result<(), ParseError> {
    let wrong = |detail: String| ParseError::Metadata {
        path: path.to_owned(),
        detail,
    };
    let value =
        yaml::document(bytes).map_err(|error| wrong(format!("error converting YAML to JSON: {error}")))?;
    let added = match value.get("properties") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(items)) => items
            .iter()
            .map(property)
            .collect::<Result<Vec<_>, _>>()
            .map_err(wrong)?,
        Some(other) => {
            return Err(wrong(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go struct field \
                 RegistryV1Properties.properties of type []property.Property",
                json_kind(other)
            )));
        }
    };
    if added.is_empty() {
        return Ok(());
    }
    let mut all = match csv.annotations.get(PROPERTIES_ANNOTATION) {
        None => Vec::new(),
        Some(text) => serde_json::from_str::<Option<Vec<Value>>>(text)
            .map_err(|error| error.to_string())
            .and_then(|own| {
                own.unwrap_or_default()
                    .iter()
                    .map(property)
                    .collect::<Result<Vec<_>, _>>()
            })
            .map_err(|detail| ParseError::PropertiesAnnotation { detail })?,
    };
    all.extend(added);
    csv.annotations.insert(
        PROPERTIES_ANNOTATION.to_owned(),
        json_text::escaped_json(&Value::Array(all)),
    );
    Ok(())
}

/// A property has a type and a value, and nothing else.
fn property(value: &Value) -> Result<Value, String> {
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind.is_empty() {
        return Err("property is missing its type".to_owned());
    }
    let content = value
        .get("value")
        .ok_or_else(|| format!("property \"{kind}\" is missing its value"))?;
    let mut out = Map::new();
    out.insert("type".to_owned(), kind.into());
    out.insert("value".to_owned(), content.clone());
    Ok(Value::Object(out))
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
