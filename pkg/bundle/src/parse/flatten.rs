//! Extraction of the objects of a manifest's document; lists are replaced by their items.

use serde_json::{Map, Value};

use crate::shape::{OBJECT_META, json_kind, shapes};

/// Maximum number of characters of an object in an error.
const MAX_QUOTED: usize = 4096;

/// Reason why a document holds no objects.
#[derive(Debug)]
pub(super) enum FlattenError {
    /// The document is not an API object.
    Document(String),
    /// An item of a list is not an API object.
    Item(&'static str),
}

impl FlattenError {
    /// Returns upstream's error message for the file `path`.
    pub(super) fn text(self, path: &str) -> String {
        match self {
            Self::Document(detail) => format!("unable to decode \"{path}\": {detail}"),
            Self::Item(detail) => detail.to_owned(),
        }
    }
}

/// Appends the objects of `document` to `out`. Any object with `items` is a list, whatever its kind; a list in a list
/// is refused, as upstream does.
pub(super) fn objects(document: Value, out: &mut Vec<Value>) -> Result<(), FlattenError> {
    let mut map = match document {
        Value::Null => return Ok(()),
        Value::Object(map) => map,
        other => return Err(mismatch(&other, "value of type unstructured.detector")),
    };
    let items = match map.get("items") {
        None => {
            check(&map)?;
            out.push(Value::Object(map));
            return Ok(());
        }
        Some(Value::Null) => &[],
        Some(Value::Array(items)) => items.as_slice(),
        Some(other) => {
            let field = "struct field decodeList.items of type []json.RawMessage";
            return Err(mismatch(other, field));
        }
    };
    if let Some(other) = items
        .iter()
        .find(|item| !matches!(item, Value::Null | Value::Object(_)))
    {
        return Err(mismatch(other, "value of type map[string]interface {}"));
    }
    check(&map)?;
    let list_kind = text(&map, "kind");
    let kind = list_kind.strip_suffix("List").unwrap_or(list_kind).to_owned();
    let version = text(&map, "apiVersion").to_owned();
    let Some(Value::Array(items)) = map.remove("items") else {
        return Ok(());
    };
    for item in items {
        let mut item = if let Value::Object(item) = item {
            item
        } else {
            Map::new()
        };
        if item.get("items").is_some_and(Value::is_array) {
            return Err(FlattenError::Item(
                "*unstructured.Unstructured is not a list: no Items field in this object",
            ));
        }
        if text(&item, "kind").is_empty() {
            if !text(&item, "apiVersion").is_empty() {
                return Err(FlattenError::Item(
                    "unable to get type info from the object \"*unstructured.Unstructured\": Object 'Kind' is missing in \
                     'object has no kind field '",
                ));
            }
            item.insert("kind".to_owned(), kind.clone().into());
            item.insert("apiVersion".to_owned(), version.clone().into());
        }
        out.push(Value::Object(item));
    }
    Ok(())
}

/// Refuses an object without kind or with invalid metadata.
fn check(map: &Map<String, Value>) -> Result<(), FlattenError> {
    if text(map, "kind").is_empty() {
        let object = Value::Object(map.clone()).to_string();
        let text: String = object.chars().take(MAX_QUOTED).collect();
        return Err(FlattenError::Document(format!(
            "Object 'Kind' is missing in '{text}'"
        )));
    }
    if let Some(metadata) = map.get("metadata") {
        shapes()
            .normalize(OBJECT_META, metadata)
            .map_err(|detail| FlattenError::Document(format!("metadata: {detail}")))?;
    }
    Ok(())
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the error of Go's decoder for a value of a wrong type.
fn mismatch(value: &Value, what: &str) -> FlattenError {
    FlattenError::Document(format!(
        "json: cannot unmarshal {} into Go {what}",
        json_kind(value)
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(document: Value) -> Result<Vec<Value>, String> {
        let mut out = Vec::new();
        objects(document, &mut out).map_err(|error| error.text("x.yaml"))?;
        Ok(out)
    }

    #[test]
    fn documents_without_objects() {
        for (document, detail) in [
            (
                json!([{"kind": "Secret"}]),
                "json: cannot unmarshal array into Go value of type unstructured.detector",
            ),
            (
                json!("text"),
                "json: cannot unmarshal string into Go value of type unstructured.detector",
            ),
            (
                json!({"kind": "List", "items": {}}),
                "json: cannot unmarshal object into Go struct field decodeList.items of type []json.RawMessage",
            ),
            (
                json!({"kind": "List", "items": [5]}),
                "json: cannot unmarshal number into Go value of type map[string]interface {}",
            ),
            (json!({"kind": 5}), "Object 'Kind' is missing in '{\"kind\":5}'"),
            (
                json!({"kind": "Secret", "metadata": {"annotations": "x"}}),
                "metadata: cannot restore map from string",
            ),
        ] {
            assert_eq!(
                read(document),
                Err(format!("unable to decode \"x.yaml\": {detail}"))
            );
        }
        assert_eq!(read(Value::Null), Ok(Vec::new()));
    }

    #[test]
    fn lists_become_their_items() {
        let (a, b) = (json!({"kind": "A"}), json!({"kind": "B"}));
        assert_eq!(
            read(json!({"kind": "List", "items": [a.clone(), b.clone()]})),
            Ok(vec![a.clone(), b])
        );
        // Items of a typed list may omit their kind; the kind of a list is ignored.
        assert_eq!(
            read(json!({"kind": "SecretList", "apiVersion": "v1", "items": [{"data": {}}, null]})),
            Ok(vec![
                json!({"kind": "Secret", "apiVersion": "v1", "data": {}}),
                json!({"kind": "Secret", "apiVersion": "v1"})
            ])
        );
        assert_eq!(
            read(json!({"kind": "ConfigMap", "items": [a.clone()]})),
            Ok(vec![a])
        );
        assert_eq!(read(json!({"kind": "List", "items": null})), Ok(Vec::new()));
        assert_eq!(
            read(json!({"kind": "List", "items": [{"kind": "List", "items": []}]})),
            Err("*unstructured.Unstructured is not a list: no Items field in this object".to_owned())
        );
        let nameless = read(json!({"kind": "List", "items": [{"apiVersion": "v1"}]})).unwrap_err();
        assert!(nameless.ends_with("Object 'Kind' is missing in 'object has no kind field '"));
    }
}
