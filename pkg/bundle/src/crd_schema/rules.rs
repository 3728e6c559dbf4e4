//! The CEL rules of `x-kubernetes-validations`.
//!
//! A rule is evaluated only if the result is certain to be the API server's. A rule is undecided if it uses functions
//! that the library lacks, or values that the API server treats as more than plain JSON: dates, durations, bytes, and
//! lists that are sets or maps if they are compared or joined.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cel::objects::Key;
use cel::{Context, ExecutionError, Value as Cel};
use olm_cel::{Expression, Mention, Operand, Size};
use olm_text::head;
use serde_json::{Map, Value};

use super::node::{Additional, ListType, Node, Rule};
use super::number::Number;
use super::value_type::Type;
use super::{Findings, PathSegment};

/// Maximum number of steps of an evaluation.
const STEPS: u64 = 1_000_000;
/// Maximum length of a rule's message, in bytes.
const MESSAGE: usize = 240;

/// Compiles a rule on values of `node`; none for a transition rule, which does not concern a single object.
///
/// # Errors
/// The reason why the rule is undecided, as one phrase that names the rule.
pub(super) fn compile(rule: &Value, node: &Node) -> Result<Option<Rule>, String> {
    let text = |key: &str| {
        rule.get(key)
            .and_then(Value::as_str)
            .map(str::trim)
            .unwrap_or_default()
    };
    let source = text("rule");
    if source.is_empty() {
        return Ok(None);
    }
    let undecided = |why: &str| format!("rule {:?} {why}", head(source, MESSAGE));
    let expression =
        Expression::parse(source).map_err(|why| undecided(&format!("cannot be parsed: {why}")))?;
    if expression.names("oldSelf") {
        let optional = rule
            .get("optionalOldSelf")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        return if optional {
            Err(undecided("depends on the previous object (oldSelf)"))
        } else {
            Ok(None)
        };
    }
    if let Some(name) = SpecialFields::of(node).used_in(&expression) {
        let name = name.to_owned();
        return Err(undecided(&format!(
            "uses {name:?}, whose type cannot be evaluated"
        )));
    }
    let message = match text("message") {
        "" => format!("failed rule: {}", head(source, MESSAGE)),
        message => head(message, MESSAGE).to_owned(),
    };
    Ok(Some(Rule { expression, message }))
}

/// Names of the fields below a rule whose values are more than plain JSON to the rule.
#[derive(Default)]
struct SpecialFields {
    /// Names of all fields below the rule.
    known: BTreeSet<String>,
    /// Fields with dates, durations or bytes, and lists of them.
    values: BTreeSet<String>,
    /// Fields that contain such values, or lists that are sets or maps: comparing or joining them is undecided.
    containers: BTreeSet<String>,
}

impl SpecialFields {
    fn of(node: &Node) -> Self {
        let mut out = Self::default();
        out.collect(node, "self");
        out
    }

    /// Adds `node` and everything below it. Returns true if any of it is special.
    fn collect(&mut self, node: &Node, name: &str) -> bool {
        self.known.insert(name.to_owned());
        let special = node
            .format
            .is_some_and(super::format::Format::is_special_to_rules);
        if special {
            self.values.insert(name.to_owned());
        }
        let mut holds = special || !matches!(node.list, ListType::Atomic);
        for (property, child) in &node.properties {
            if let Some(property) = escape(property) {
                holds |= self.collect(child, &property);
            }
        }
        let additional = match &node.additional {
            Additional::Schema(child) => Some(&**child),
            _ => None,
        };
        // Elements are reached through their container.
        for child in node.items.as_deref().into_iter().chain(additional) {
            holds |= self.collect(child, name);
        }
        if holds {
            self.containers.insert(name.to_owned());
        }
        holds
    }

    /// Returns a name in `expression` that makes the result uncertain.
    fn used_in<'a>(&self, expression: &'a Expression) -> Option<&'a str> {
        let mentions = expression.mentions();
        mentions.into_iter().find_map(|mention| match mention {
            Mention::Field(name) => Some(name).filter(|name| self.values.contains(*name)),
            Mention::Call("_==_" | "_!=_" | "_+_", operands) => operands.into_iter().find(|name| {
                // The variable of a loop can have any name; those of macros begin with an @.
                let variable = !self.known.contains(*name) && !name.starts_with('@');
                self.containers.contains(*name) || variable && !self.containers.is_empty()
            }),
            Mention::Call(..) | Mention::Presence(_) => None,
        })
    }
}

/// Evaluates the rules of `value` and of everything below it.
pub(super) fn check(node: &Node, value: &Value, out: &mut Findings) {
    if !node.has_rules || value.is_null() {
        return;
    }
    if !node.rules.is_empty() {
        evaluate(node, value, out);
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if let Some(known) = node.properties.get(name) {
                    out.within(&PathSegment::Field(name), |out| check(known, value, out));
                } else if let Additional::Schema(known) = &node.additional {
                    out.within(&PathSegment::Key(name), |out| check(known, value, out));
                }
            }
        }
        Value::Array(items) => {
            let Some(known) = &node.items else { return };
            for (at, item) in items.iter().enumerate() {
                out.within(&PathSegment::Index(at), |out| check(known, item, out));
            }
        }
        _ => {}
    }
}

fn evaluate(node: &Node, value: &Value, out: &mut Findings) {
    let size = Operand::Sized(Size::of(value));
    let mut context = Context::with_env(olm_cel::environment());
    context.add_variable_from_value("self", convert(node, value));
    for rule in &node.rules {
        let source = head(rule.expression.source(), MESSAGE);
        if rule.expression.steps(&[("self", size)]) > STEPS {
            out.undecided(&format!("rule {source:?} could take more than {STEPS} steps"));
            continue;
        }
        match rule.expression.evaluate(&context) {
            Ok(Cel::Bool(true)) => {}
            Ok(Cel::Bool(false)) => out.fault(rule.message.clone()),
            Ok(_) => out.undecided(&format!("rule {source:?} does not return a boolean")),
            Err(
                error @ (ExecutionError::NoSuchKey(_)
                | ExecutionError::IndexOutOfBounds(_)
                | ExecutionError::DivisionByZero(_)
                | ExecutionError::RemainderByZero(_)
                | ExecutionError::Overflow(..)),
            ) => out.fault(format!("failed rule: {source}: {error}")),
            Err(error) => {
                let error = error.to_string();
                out.undecided(&format!(
                    "rule {source:?} cannot be evaluated: {}",
                    head(&error, MESSAGE)
                ));
            }
        }
    }
}

/// Returns a value as rules see it: typed by the schema, without null fields.
fn convert(node: &Node, value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (Number::of(number), node.kind) {
            (number, Some(Type::Number)) => Cel::Float(number.float()),
            (Number::Integer(whole), _) => Cel::Int(whole),
            (Number::Float(float), Some(Type::Integer)) => Cel::Int(to_int(float)),
            (Number::Float(float), _) => Cel::Float(float),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => {
            let known = node.items.as_deref();
            let unknown = Node::default();
            let items = items.iter().map(|item| convert(known.unwrap_or(&unknown), item));
            Cel::List(Arc::new(items.collect()))
        }
        Value::Object(map) => Cel::from(fields(node, map)),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole, as its type was checked")]
fn to_int(float: f64) -> i64 {
    float as i64
}

fn fields(node: &Node, map: &Map<String, Value>) -> HashMap<Key, Cel> {
    let mut out: HashMap<Key, Cel> = HashMap::with_capacity(map.len());
    let unknown = Node::default();
    for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
        if node.is_resource && name == "metadata" {
            out.insert(Key::from("metadata"), metadata(value));
        } else if let Some(known) = node.properties.get(name) {
            if let Some(name) = escape(name) {
                out.insert(Key::from(name), convert(known, value));
            }
        } else if node.is_resource && matches!(name.as_str(), "apiVersion" | "kind") {
            out.insert(Key::from(name.clone()), convert(&unknown, value));
        } else if let Additional::Schema(known) = &node.additional {
            out.insert(Key::from(name.clone()), convert(known, value));
        }
    }
    out
}

/// Reduces a resource's metadata to the names, the only metadata that rules see.
fn metadata(value: &Value) -> Cel {
    let names = ["name", "generateName"].into_iter().filter_map(|key| {
        let text = value.get(key)?.as_str()?;
        Some((Key::from(key), Cel::from(text)))
    });
    Cel::from(names.collect::<HashMap<Key, Cel>>())
}

/// Returns a field's name as rules write it; none if rules cannot reach the field.
#[must_use]
pub fn escape(name: &str) -> Option<String> {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (word, length) = match c {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            c if c.is_ascii_alphanumeric() || c == '_' => (rest.get(..1)?, 1),
            _ => return None,
        };
        out.push_str(word);
        rest = rest.get(length..)?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_escaped_for_rules() {
        for (name, want) in [
            ("size", Some("size")),
            ("namespace", Some("__namespace__")),
            ("x-prop", Some("x__dash__prop")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("redact__d", Some("redact__underscores__d")),
            ("one_two", Some("one_two")),
            ("1st", None),
            ("ä", None),
            ("", None),
        ] {
            assert_eq!(escape(name).as_deref(), want, "{name}");
        }
    }
}
