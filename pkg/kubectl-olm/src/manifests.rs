//! Objects as output: a list for programs, YAML documents for people.

use serde_json::{Value, json};

use crate::controllers::title;
use crate::failure::Failure;
use crate::report::Report;

/// Returns the objects as a list, which `kubectl apply -f -` accepts.
pub(crate) fn list(objects: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": objects})
}

/// Returns the objects as YAML documents.
///
/// # Errors
/// An object cannot be written as YAML.
pub(crate) fn documents(objects: &[Value]) -> Result<String, Failure> {
    let mut text = String::new();
    for object in objects {
        let document = Report::new(object.clone(), String::new()).yaml();
        let document =
            document.map_err(|error| Failure::NegativeAnswer(format!("{}: {error}", title(object))))?;
        text.push_str("---\n");
        text.push_str(&document);
    }
    Ok(text)
}
