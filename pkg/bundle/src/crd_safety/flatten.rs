//! A schema as a flat list of its fields.

use std::collections::BTreeMap;

use serde_json::Value;

/// Deepest schema looked at; Kubernetes' own limits keep real ones far below.
const MAX_DEPTH: usize = 200;

/// Schemas by path: `^` is the root, `^.spec.list.items` the elements of a list.
pub(super) type Fields<'a> = BTreeMap<String, &'a Value>;

pub(super) fn flatten(schema: &Value) -> Fields<'_> {
    let mut out = BTreeMap::new();
    let mut todo = vec![("^".to_owned(), schema, 0)];
    while let Some((path, schema, depth)) = todo.pop() {
        if depth < MAX_DEPTH {
            children(&path, schema, |path, child| todo.push((path, child, depth + 1)));
        }
        out.insert(path, schema);
    }
    out
}

fn children<'a>(path: &str, schema: &'a Value, mut add: impl FnMut(String, &'a Value)) {
    for key in ["items", "additionalProperties", "additionalItems", "not"] {
        match schema.get(key) {
            Some(child @ Value::Object(_)) => add(format!("{path}.{key}"), child),
            Some(Value::Array(list)) => {
                for (at, child) in list.iter().enumerate() {
                    add(format!("{path}.{key}[{at}]"), child);
                }
            }
            _ => {}
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (at, child) in schema
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            add(format!("{path}.{key}[{at}]"), child);
        }
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, child) in properties {
            add(format!("{path}.{name}"), child);
        }
    }
}
