//! Representation of schema values in findings.

use serde_json::Value;

/// Maximum number of characters of a value in a finding.
const MAX_SHOWN: usize = 200;

/// Returns the value of the schema field `key` in short form, without the content of complex values.
pub(super) fn show(key: &str, value: Option<&Value>) -> String {
    let pointer = matches!(
        key,
        "x-kubernetes-preserve-unknown-fields"
            | "x-kubernetes-list-type"
            | "x-kubernetes-map-type"
            | "multipleOf"
    );
    match value {
        None | Some(Value::Null) => absent(key).to_owned(),
        Some(Value::Array(items)) if key == "x-kubernetes-list-map-keys" => {
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            format!("[]string{{{}}}", items.join(", "))
        }
        // The content of a rule or an example is useful.
        Some(value) if matches!(key, "x-kubernetes-validations" | "example") => shortened(value),
        Some(Value::Array(_) | Value::Object(_)) => "<complex value>".to_owned(),
        Some(other) if pointer => format!("&{other}"),
        Some(other) => other.to_string(),
    }
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn absent(key: &str) -> &'static str {
    match key {
        "format" | "title" | "id" | "$schema" | "type" => "\"\"",
        "exclusiveMaximum"
        | "exclusiveMinimum"
        | "uniqueItems"
        | "x-kubernetes-embedded-resource"
        | "x-kubernetes-int-or-string" => "false",
        _ => "nil",
    }
}

/// Returns the name of the schema field `key` in findings.
pub(super) fn field_name(key: &str) -> String {
    let bare = key.strip_prefix('$').unwrap_or(key);
    match bare.strip_prefix("x-kubernetes-") {
        Some(rest) => format!("X{}", rest.split('-').map(capitalized).collect::<String>()),
        None => capitalized(bare),
    }
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| {
        format!("{}{}", first.to_ascii_uppercase(), chars.as_str())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{field_name, show};

    #[test]
    fn values_are_short() {
        assert_eq!(field_name("x-kubernetes-map-type"), "XMapType");
        assert_eq!(field_name("$ref"), "Ref");
        assert_eq!(
            show("x-kubernetes-map-type", Some(&json!("atomic"))),
            "&\"atomic\""
        );
        assert_eq!(
            show("x-kubernetes-list-map-keys", Some(&json!(["name"]))),
            "[]string{\"name\"}"
        );
        assert_eq!(show("additionalProperties", Some(&json!({}))), "<complex value>");
        assert_eq!(
            show("example", Some(&json!("ä".repeat(500)))).chars().count(),
            203
        );
        assert_eq!(show("format", None), "\"\"");
    }
}
