//! Flat list of the fields of a schema.

use std::collections::BTreeMap;

use serde_json::Value;

/// Maximum nesting of a schema; Kubernetes' own limits are far below.
const MAX_DEPTH: usize = 200;

/// A field and its place in the schema.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    /// Its schema.
    pub schema: &'a Value,
    /// Path of the schema that contains it; `None` at the root.
    pub above: Option<String>,
    /// The schema that contains it and its name there, if it is a property.
    pub property_of: Option<(&'a Value, &'a str)>,
    /// True below `allOf`, `anyOf`, `oneOf` or `not`, where schemas only restrict.
    pub in_logic: bool,
}

/// Fields by path: `^` is the root, `^.spec.list.items` the elements of a list.
pub(super) type Fields<'a> = BTreeMap<String, Node<'a>>;

pub(super) fn flatten(schema: &Value) -> Fields<'_> {
    let root = Node {
        schema,
        above: None,
        property_of: None,
        in_logic: false,
    };
    let mut out = BTreeMap::new();
    let mut todo = vec![("^".to_owned(), root, 0)];
    while let Some((path, node, depth)) = todo.pop() {
        if depth < MAX_DEPTH {
            children(&path, &node, |path, child| todo.push((path, child, depth + 1)));
        }
        out.insert(path, node);
    }
    out
}

fn children<'a>(path: &str, node: &Node<'a>, mut add: impl FnMut(String, Node<'a>)) {
    let schema = node.schema;
    let mut add = |at: String, child: &'a Value, name: Option<&'a str>, logic: bool| {
        let node = Node {
            schema: child,
            above: Some(path.to_owned()),
            property_of: name.map(|name| (schema, name)),
            in_logic: node.in_logic || logic,
        };
        add(format!("{path}.{at}"), node);
    };
    for (key, logic) in [
        ("items", false),
        ("additionalProperties", false),
        ("additionalItems", false),
        ("not", true),
    ] {
        match schema.get(key) {
            Some(child @ Value::Object(_)) => add(key.to_owned(), child, None, logic),
            Some(Value::Array(list)) => {
                for (at, child) in list.iter().enumerate() {
                    add(format!("{key}[{at}]"), child, None, logic);
                }
            }
            _ => {}
        }
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        let list = schema.get(key).and_then(Value::as_array);
        for (at, child) in list.into_iter().flatten().enumerate() {
            add(format!("{key}[{at}]"), child, None, true);
        }
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        for (name, child) in properties {
            add(name.clone(), child, Some(name), false);
        }
    }
}
