//! Merge of `metadata/properties.yaml` with the CSV's own properties.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{Csv, PROPERTIES_ANNOTATION};
use crate::shape::json_kind;
use crate::{ParseError, json_text, yaml};

/// Appends the properties of the file `path` to the annotation and writes the annotation as compact JSON. If the
/// file is absent or empty, the annotation stays unchanged. In any case it must be a list.
pub(super) fn merge(csv: &mut Csv, path: &str, file: Option<&[u8]>) -> Result<(), ParseError> {
    let mut all = match csv.annotations.get(PROPERTIES_ANNOTATION) {
        None => Vec::new(),
        Some(text) => own(text).map_err(|detail| ParseError::PropertiesAnnotation { detail })?,
    };
    let Some(bytes) = file.filter(|bytes| !bytes.is_empty()) else {
        return Ok(());
    };
    let wrong = |detail: String| ParseError::Metadata {
        path: path.to_owned(),
        detail,
    };
    let value =
        yaml::document(bytes).map_err(|error| wrong(format!("error converting YAML to JSON: {error}")))?;
    all.extend(added(&value).map_err(|detail| {
        wrong(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {detail}"
        ))
    })?);
    // An empty list is a nil slice in Go.
    let text = if all.is_empty() {
        "null".to_owned()
    } else {
        format!("[{}]", all.join(","))
    };
    csv.annotations.insert(PROPERTIES_ANNOTATION.to_owned(), text);
    Ok(())
}

/// Returns the properties of the annotation, each as compact JSON; the order of keys inside values stays.
fn own(text: &str) -> Result<Vec<String>, String> {
    type Fields = BTreeMap<String, Box<RawValue>>;
    let unread = |error: serde_json::Error| error.to_string();
    let list: Value = serde_json::from_str(text).map_err(unread)?;
    let mismatch = |value: &Value, what: &str| {
        let kind = json_kind(value);
        Err(format!("json: cannot unmarshal {kind} into Go {what}"))
    };
    let items = match &list {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        other => return mismatch(other, "value of type []property.Property"),
    };
    for item in items {
        match (item, item.get("type")) {
            (Value::Null, _) | (Value::Object(_), None | Some(Value::Null | Value::String(_))) => {}
            (_, Some(kind)) => return mismatch(kind, "struct field Property.type of type string"),
            (_, None) => return mismatch(item, "value of type property.Property"),
        }
    }
    let raw: Vec<Option<Fields>> = serde_json::from_str(text).map_err(unread)?;
    let read = |(item, fields): (&Value, Option<Fields>)| {
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
        let value = fields.as_ref().and_then(|fields| fields.get("value"));
        property(kind, &json_text::compact(value.map_or("null", |raw| raw.get())))
    };
    Ok(items.iter().zip(raw).map(read).collect())
}

/// Returns the properties of the file. The error names the actual and the expected type.
fn added(value: &Value) -> Result<Vec<String>, String> {
    let mismatch = |value: &Value, what: &str| format!("{} into Go {what}", json_kind(value));
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Object(map) => map.get("properties").unwrap_or(&Value::Null),
        other => return Err(mismatch(other, "value of type source.RegistryV1Properties")),
    };
    let items = match list {
        Value::Null => return Ok(Vec::new()),
        Value::Array(items) => items,
        other => {
            let field = "struct field RegistryV1Properties.properties of type []property.Property";
            return Err(mismatch(other, field));
        }
    };
    items
        .iter()
        .map(|item| {
            let field = |name: &str| item.get(name).filter(|value| !value.is_null());
            if !matches!(item, Value::Null | Value::Object(_)) {
                let what = "struct field RegistryV1Properties.properties of type property.Property";
                return Err(mismatch(item, what));
            }
            let kind = match field("type") {
                None => String::new(),
                Some(Value::String(kind)) => kind.clone(),
                // YAML scalars become text where text is expected.
                Some(scalar @ (Value::Number(_) | Value::Bool(_))) => scalar.to_string(),
                Some(other) => {
                    return Err(mismatch(
                        other,
                        "struct field Property.properties.type of type string",
                    ));
                }
            };
            let value = field("value").map_or_else(|| "null".to_owned(), json_text::escaped_json);
            Ok(property(&kind, &value))
        })
        .collect()
}

/// Returns a property as JSON; it has only a type and a value.
fn property(kind: &str, value: &str) -> String {
    let kind = json_text::escaped_json(&kind.into());
    format!("{{\"type\":{kind},\"value\":{value}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(annotation: Option<&str>, file: Option<&str>) -> Result<Option<String>, String> {
        let mut csv = Csv::default();
        csv.annotations
            .extend(annotation.map(|text| (PROPERTIES_ANNOTATION.to_owned(), text.to_owned())));
        merge(&mut csv, "metadata/properties.yaml", file.map(str::as_bytes))
            .map_err(|error| error.to_string())?;
        Ok(csv.annotations.remove(PROPERTIES_ANNOTATION))
    }

    #[test]
    fn an_annotation_is_read_with_and_without_a_file() {
        for file in [None, Some(""), Some("properties: []")] {
            for (annotation, detail) in [
                ("[", ""),
                (
                    "{}",
                    "json: cannot unmarshal object into Go value of type []property.Property",
                ),
                (
                    "[5]",
                    "json: cannot unmarshal number into Go value of type property.Property",
                ),
                (
                    "[{\"type\":5}]",
                    "json: cannot unmarshal number into Go struct field Property.type of type string",
                ),
            ] {
                let error = merged(Some(annotation), file).unwrap_err();
                let head =
                    format!("failed to unmarshal csv.metadata.annotations['olm.properties']: {detail}");
                assert!(error.starts_with(&head), "{annotation} {file:?}: {error}");
            }
        }
        // Valid annotations stay as written, unless there is a file.
        let spaced = "[ {\"value\" : 1.0, \"type\": \"a\"} ]";
        assert_eq!(merged(Some(spaced), None).unwrap().as_deref(), Some(spaced));
        assert_eq!(merged(Some(spaced), Some("")).unwrap().as_deref(), Some(spaced));
        assert_eq!(merged(None, None), Ok(None));
    }

    #[test]
    fn properties_are_appended() {
        let own = r#"[{"type":"a","value":{"b": "x <y", "a":1.0}},null,{"more":1}]"#;
        let file = "properties: [{type: c, value: {z: 1, x: 1.0}}, {}]";
        assert_eq!(
            merged(Some(own), Some(file)).unwrap().as_deref(),
            Some(
                r#"[{"type":"a","value":{"b":"x \u003cy","a":1.0}},{"type":"","value":null},{"type":"","value":null},{"type":"c","value":{"x":1,"z":1}},{"type":"","value":null}]"#
            )
        );
        assert_eq!(
            merged(None, Some("properties: [{type: 5}]")).unwrap().as_deref(),
            Some(r#"[{"type":"5","value":null}]"#)
        );
        assert_eq!(merged(None, Some("other: 1")).unwrap().as_deref(), Some("null"));
        for (file, detail) in [
            ("[]", "array into Go value of type source.RegistryV1Properties"),
            (
                "properties: 5",
                "number into Go struct field RegistryV1Properties.properties of type []property.Property",
            ),
        ] {
            let error = merged(None, Some(file)).unwrap_err();
            assert!(error.ends_with(detail), "{error}");
        }
    }
}
