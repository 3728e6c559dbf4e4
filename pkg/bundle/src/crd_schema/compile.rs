//! Compilation of an `openAPIV3Schema` to a tree that checks values.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::format::Format;
use super::node::{Additional, ListType, Node, Pattern};
use super::number::Bound;
use super::value_type::Type;
use super::{UndecidedChecks, rules};

/// Maximum nesting of a schema; Kubernetes' own limits are far below.
const DEPTH: usize = 200;
/// Maximum memory of a compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// The schema of a whole resource.
pub(super) fn root(schema: &Value, unknown: &mut UndecidedChecks) -> Node {
    let mut node = Compiler {
        unknown,
        path: String::new(),
    }
    .node(schema, 0, false);
    node.is_resource = true;
    node
}

struct Compiler<'a> {
    unknown: &'a mut UndecidedChecks,
    path: String,
}

impl Compiler<'_> {
    fn within<T>(&mut self, step: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if !self.path.is_empty() && !step.starts_with('[') {
            self.path.push('.');
        }
        self.path.push_str(step);
        let out = read(self);
        self.path.truncate(length);
        out
    }

    fn undecided(&mut self, why: &str) {
        self.unknown.add(&self.path, why);
    }

    /// Compiles one schema. `in_logic` is true below `allOf`, `anyOf`, `oneOf` and `not`, whose schemas only restrict.
    fn node(&mut self, schema: &Value, depth: usize, in_logic: bool) -> Node {
        let empty = Map::new();
        let map = schema.as_object().unwrap_or(&empty);
        if depth > DEPTH {
            self.undecided("the schema is nested too deeply to be checked");
            return Node::default();
        }
        let flag = |key: &str| map.get(key).and_then(Value::as_bool).unwrap_or(false);
        let word = |key: &str| {
            map.get(key)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        let count = |key: &str| map.get(key).and_then(Value::as_u64);
        let kind = word("type").and_then(Type::of);
        let properties: BTreeMap<String, Node> = match map.get("properties") {
            Some(Value::Object(properties)) => properties
                .iter()
                .map(|(name, schema)| {
                    let node = self.within(name, |inner| inner.node(schema, depth + 1, in_logic));
                    (name.clone(), node)
                })
                .collect(),
            _ => BTreeMap::new(),
        };
        let items = map
            .get("items")
            .filter(|items| items.is_object())
            .map(|items| Box::new(self.within("[]", |inner| inner.node(items, depth + 1, in_logic))));
        let additional = match map.get("additionalProperties") {
            Some(schema @ Value::Object(_)) => {
                let node = self.within("[]", |inner| inner.node(schema, depth + 1, in_logic));
                Additional::Schema(Box::new(node))
            }
            Some(Value::Bool(true)) => Additional::Any,
            Some(Value::Bool(false)) => Additional::Forbidden,
            _ => Additional::Unspecified,
        };
        let mut all = |key: &str| -> Vec<Node> {
            let schemas = map.get(key).and_then(Value::as_array);
            let schemas = schemas.map(Vec::as_slice).unwrap_or_default();
            schemas
                .iter()
                .map(|schema| self.node(schema, depth + 1, true))
                .collect()
        };
        let (all_of, any_of, one_of) = (all("allOf"), all("anyOf"), all("oneOf"));
        let not = map
            .get("not")
            .filter(|not| not.is_object())
            .map(|not| Box::new(self.node(not, depth + 1, true)));
        let mut node = Node {
            kind,
            int_or_string: flag("x-kubernetes-int-or-string"),
            nullable: flag("nullable"),
            keeps_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            is_resource: flag("x-kubernetes-embedded-resource"),
            default: map.get("default").filter(|default| !default.is_null()).cloned(),
            choices: list(map, "enum").to_vec(),
            minimum: bound(map, "minimum", "exclusiveMinimum"),
            maximum: bound(map, "maximum", "exclusiveMaximum"),
            multiple_of: map.get("multipleOf").and_then(Value::as_f64),
            length: (count("minLength"), count("maxLength")),
            items_count: (count("minItems"), count("maxItems")),
            fields_count: (count("minProperties"), count("maxProperties")),
            unique_items: flag("uniqueItems"),
            pattern: word("pattern").map(|source| self.pattern(source)),
            format: word("format").and_then(|name| Format::of(name, kind)),
            required: texts(map, "required"),
            properties,
            additional,
            items,
            list: match word("x-kubernetes-list-type") {
                Some("set") => ListType::Set,
                Some("map") => ListType::Map(texts(map, "x-kubernetes-list-map-keys")),
                _ => ListType::Atomic,
            },
            all_of,
            any_of,
            one_of,
            not,
            ..Node::default()
        };
        self.rules(map, in_logic, &mut node);
        node.set_flags();
        node
    }

    fn pattern(&mut self, source: &str) -> Pattern {
        let regex = regex::RegexBuilder::new(&olm_cel::rust_pattern(source))
            .size_limit(PATTERN_BYTES)
            .build()
            .ok();
        if regex.is_none() {
            self.undecided(&format!("pattern {source:?} cannot be compiled"));
        }
        Pattern {
            source: source.to_owned(),
            regex,
        }
    }

    fn rules(&mut self, map: &Map<String, Value>, in_logic: bool, node: &mut Node) {
        for rule in list(map, "x-kubernetes-validations") {
            if in_logic {
                let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default();
                self.undecided(&format!("rule {text:?} is below allOf, anyOf, oneOf or not"));
                continue;
            }
            match rules::compile(rule, node) {
                Ok(rule) => node.rules.extend(rule),
                Err(why) => self.undecided(&why),
            }
        }
    }
}

fn list<'a>(map: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    let list = map.get(key).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

fn texts(map: &Map<String, Value>, key: &str) -> Vec<String> {
    list(map, key)
        .iter()
        .filter_map(Value::as_str)
        .map(ToOwned::to_owned)
        .collect()
}

fn bound(map: &Map<String, Value>, key: &str, exclusive: &str) -> Option<Bound> {
    Some(Bound {
        value: map.get(key)?.as_f64()?,
        exclusive: map.get(exclusive).and_then(Value::as_bool).unwrap_or(false),
    })
}
