//! GraphQL names derived from names in catalogs, by upstream's rules.

use std::collections::BTreeSet;

/// Returns the type of a schema: `olm.bundle` gives `OlmBundle`.
pub(super) fn type_name(schema: &str) -> String {
    let name: String = cleaned(schema)
        .trim_start_matches(|char: char| char.is_ascii_digit())
        .split('_')
        .map(capitalised)
        .collect();
    match name.bytes().next() {
        None => "Unknown".to_owned(),
        // The name began with punctuation and digits.
        Some(byte) if byte.is_ascii_digit() => format!("Type{name}"),
        Some(_) => name,
    }
}

/// Returns the root field that lists the objects of a schema: `olm.bundle` gives `olmbundles`.
pub(super) fn query_field(schema: &str) -> String {
    let name: String = schema
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|char| char.to_ascii_lowercase())
        .collect();
    if name.starts_with(|char: char| char.is_ascii_digit()) {
        format!("field_{name}s")
    } else {
        format!("{name}s")
    }
}

/// Returns the field of a key: `related_images` gives `relatedImages`.
pub(super) fn field_name(key: &str) -> String {
    let cleaned = cleaned(key);
    let mut parts = cleaned.split('_').filter(|part| !part.is_empty());
    let Some(first) = parts.next() else {
        return "value".to_owned();
    };
    let mut name = if first.bytes().any(|byte| byte.is_ascii_lowercase()) {
        let (head, tail) = first.split_at(1);
        head.to_ascii_lowercase() + tail
    } else {
        first.to_ascii_lowercase()
    };
    name.extend(parts.map(capitalised));
    if name.starts_with(|char: char| char.is_ascii_alphabetic()) {
        name
    } else {
        format!("field_{name}")
    }
}

/// Reserves `wanted`, with a number appended if it is taken.
pub(super) fn reserve(wanted: &str, taken: &mut BTreeSet<String>) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{wanted}_{number}");
        number += 1;
    }
    name
}

fn cleaned(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_ascii_alphanumeric() { char } else { '_' })
        .collect()
}

fn capitalised(part: &str) -> String {
    let mut chars = part.chars();
    match chars.next() {
        None => String::new(),
        Some(first) => first.to_ascii_uppercase().to_string() + &chars.as_str().to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_names() {
        for (schema, name, field) in [
            ("olm.bundle", "OlmBundle", "olmbundles"),
            ("olm.deprecations", "OlmDeprecations", "olmdeprecationss"),
            ("custom.schema", "CustomSchema", "customschemas"),
            ("myOrg.v1/Thing", "MyorgV1Thing", "myorgv1things"),
            ("9lives", "Lives", "field_9livess"),
            ("..", "Unknown", "s"),
            ("é.x", "X", "xs"),
            (".9", "Type9", "field_9s"),
        ] {
            assert_eq!(
                (type_name(schema).as_str(), query_field(schema).as_str()),
                (name, field)
            );
        }
        for (key, name) in [
            ("name", "name"),
            ("relatedImages", "relatedImages"),
            ("related_images", "relatedImages"),
            ("CRD", "crd"),
            ("skipRange", "skipRange"),
            ("Name", "name"),
            ("__x", "x"),
            ("a.B_c", "aBC"),
            ("9a", "field_9a"),
            ("", "value"),
            ("é", "value"),
        ] {
            assert_eq!(field_name(key), name, "{key}");
        }
    }

    #[test]
    fn taken_names_get_a_number() {
        let mut taken = BTreeSet::new();
        assert_eq!(reserve("a", &mut taken), "a");
        assert_eq!(reserve("a", &mut taken), "a_2");
        assert_eq!(reserve("a", &mut taken), "a_3");
    }
}
