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
    /// Key of the schema that contains it; `None` at the root.
    pub above: Option<String>,
    /// The schema that contains it and its name there, if it is a property.
    pub property_of: Option<(&'a Value, &'a str)>,
    /// True below `allOf`, `anyOf`, `oneOf` or `not`, where schemas only restrict.
    pub in_logic: bool,
}

/// Fields by key: `^` is the root, `^.spec.list.items` the elements of a list. A key is a path in which [`MARK`] encloses the names
/// that could be taken for something else; [`path`] removes it.
pub(super) type Fields<'a> = BTreeMap<String, Node<'a>>;

/// Keys of a schema with a schema below, and true if that schema only restricts.
const SCHEMAS: [(&str, bool); 4] = [
    ("items", false),
    ("additionalProperties", false),
    ("additionalItems", false),
    ("not", true),
];
/// Character around the name of a property that could be taken for a nested field (`a.b`) or a key of the schema (`items`). Without
/// it, two fields could have one key, and the removal of one of them would stay unseen.
const MARK: char = '\0';

/// Returns the path of a field as findings and waivers name it.
pub(super) fn path(key: &str) -> String {
    key.replace(MARK, "")
}

/// Returns the last part of a property's key.
fn segment(name: &str) -> String {
    let is_plain = !name.contains(['.', '[', MARK]) && SCHEMAS.iter().all(|(key, _)| *key != name);
    if is_plain {
        name.to_owned()
    } else {
        format!("{MARK}{name}{MARK}")
    }
}

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
    for (key, logic) in SCHEMAS {
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
            add(segment(name), child, Some(name), false);
        }
    }
}
