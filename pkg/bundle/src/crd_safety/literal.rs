//! Values of schema fields as they appear in findings.

use serde_json::Value;

/// The value of the schema field `key`, short: complex ones are only named.
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
        Some(Value::Array(_) | Value::Object(_)) => "<complex value>".to_owned(),
        Some(other) if pointer => format!("&{other}"),
        Some(other) => other.to_string(),
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

/// The name of the schema field `key` in findings.
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
