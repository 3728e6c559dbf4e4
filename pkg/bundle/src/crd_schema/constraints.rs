//! Checks of types, bounds, patterns and formats, and the keywords that combine schemas.

use serde_json::{Map, Value};

use super::node::{Additional, Node};
use super::number::{Bound, Number};
use super::quoted::quoted;
use super::value_type::Type;
use super::{Findings, PathSegment};

/// Most choices that a finding names.
const CHOICES: usize = 12;

/// Checks `value` and everything below it.
pub(super) fn check(node: &Node, value: &Value, out: &mut Findings) {
    if !has_type(node, value) {
        return out.fault(format!("{} is not {}", kind(value), expected_type(node)));
    }
    enumeration(node, value, out);
    if value.is_null() {
        return;
    }
    combined(node, value, out);
    match value {
        Value::String(text) => string(node, text, out),
        Value::Number(given) => numeric(node, Number::of(given), value, out),
        Value::Array(items) => array(node, items, out),
        Value::Object(map) => object(node, map, out),
        Value::Null | Value::Bool(_) => {}
    }
}

fn has_type(node: &Node, value: &Value) -> bool {
    let whole = |value: &Value| matches!(value, Value::Number(number) if Number::of(number).is_integer());
    if value.is_null() {
        return node.nullable || node.kind.is_none() && !node.int_or_string;
    }
    if node.int_or_string {
        return value.is_string() || whole(value);
    }
    match node.kind {
        None => true,
        Some(Type::Object) => value.is_object(),
        Some(Type::Array) => value.is_array(),
        Some(Type::String) => value.is_string(),
        Some(Type::Boolean) => value.is_boolean(),
        Some(Type::Number) => value.is_number(),
        Some(Type::Integer) => whole(value),
    }
}

fn expected_type(node: &Node) -> &'static str {
    if node.int_or_string {
        return "an integer or a string";
    }
    match node.kind {
        Some(Type::Object) => "an object",
        Some(Type::Array) => "a list",
        Some(Type::Integer) => "an integer",
        Some(Type::Boolean) => "a boolean",
        Some(Type::Number) => "a number",
        Some(Type::String) | None => "a string",
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        _ => quoted(value),
    }
}

fn enumeration(node: &Node, value: &Value, out: &mut Findings) {
    if node.choices.is_empty() || node.choices.iter().any(|choice| same(choice, value)) {
        return;
    }
    let mut names: Vec<String> = node.choices.iter().take(CHOICES).map(quoted).collect();
    if node.choices.len() > CHOICES {
        names.push(format!("{} more", node.choices.len() - CHOICES));
    }
    out.fault(format!("{} is not one of {}", quoted(value), names.join(", ")));
}

/// Returns true if two values are equal; 1 and 1.0 are.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (Number::of(left), Number::of(right)) {
            (Number::Integer(left), Number::Integer(right)) => left == right,
            (left, right) => left.float().total_cmp(&right.float()).is_eq(),
        },
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

fn combined(node: &Node, value: &Value, out: &mut Findings) {
    for part in &node.all_of {
        check(part, value, out);
    }
    let each = |nodes: &[Node], out: &Findings| -> Vec<Findings> {
        nodes
            .iter()
            .map(|part| {
                let mut branch = out.branch();
                check(part, value, &mut branch);
                branch
            })
            .collect()
    };
    if !node.any_of.is_empty() {
        let answers = each(&node.any_of, out);
        if !answers.iter().any(Findings::is_clean) {
            if let Some(undecided) = answers.iter().find(|answer| answer.faults.is_empty()) {
                out.unknown.0.extend(undecided.unknown.0.iter().cloned());
            } else {
                out.fault(format!("matches none of anyOf: {}", first_of(&answers)));
            }
        }
    }
    if !node.one_of.is_empty() {
        let answers = each(&node.one_of, out);
        let fitting = answers.iter().filter(|answer| answer.is_clean()).count();
        let undecided = answers
            .iter()
            .filter(|answer| answer.faults.is_empty() && !answer.is_clean());
        if fitting > 1 {
            out.fault(format!("matches {fitting} schemas of oneOf instead of one"));
        } else if undecided.clone().count() > 0 {
            out.unknown
                .0
                .extend(undecided.flat_map(|answer| answer.unknown.0.iter().cloned()));
        } else if fitting == 0 {
            out.fault(format!("matches none of oneOf: {}", first_of(&answers)));
        }
    }
    if let Some(not) = &node.not {
        let mut branch = out.branch();
        check(not, value, &mut branch);
        if branch.is_clean() {
            out.fault("matches the schema that it must not match (not)");
        } else if branch.faults.is_empty() {
            out.unknown.0.extend(branch.unknown.0);
        }
    }
}

/// Returns the first fault of the alternative that has the fewest faults.
fn first_of(answers: &[Findings]) -> String {
    let nearest = answers.iter().min_by_key(|answer| answer.faults.len());
    nearest
        .and_then(|answer| answer.faults.first())
        .map(ToString::to_string)
        .unwrap_or_default()
}

fn string(node: &Node, text: &str, out: &mut Findings) {
    let count = || text.chars().count() as u64;
    let (least, most) = node.length;
    if least.is_some() || most.is_some() {
        range(count(), least, most, ("character", "characters"), out);
    }
    if let Some(pattern) = &node.pattern {
        // A pattern that cannot be compiled was reported with the schema.
        if pattern.regex.as_ref().is_some_and(|regex| !regex.is_match(text)) {
            out.fault(format!(
                "{} does not match the pattern {:?}",
                quoted(&text.into()),
                pattern.source
            ));
        } else if pattern.regex.is_none() {
            out.undecided(&format!("pattern {:?} cannot be compiled", pattern.source));
        }
    }
    if let Some(format) = &node.format {
        match format.admits_text(text) {
            Some(true) => {}
            Some(false) => out.fault(format!(
                "{} is not a valid {}",
                quoted(&text.into()),
                format.name()
            )),
            None => out.undecided(&format!("format {} cannot be checked", format.name())),
        }
    }
}

fn range(found: u64, least: Option<u64>, most: Option<u64>, (one, many): (&str, &str), out: &mut Findings) {
    let unit = |count: u64| if count == 1 { one } else { many };
    if let Some(least) = least.filter(|least| found < *least) {
        out.fault(format!(
            "has {found} {}, fewer than the minimum {least}",
            unit(found)
        ));
    }
    if let Some(most) = most.filter(|most| found > *most) {
        out.fault(format!(
            "has {found} {}, more than the maximum {most}",
            unit(found)
        ));
    }
}

fn numeric(node: &Node, number: Number, value: &Value, out: &mut Findings) {
    let exclusive = |bound: Bound| if bound.exclusive { " (exclusive)" } else { "" };
    if let Some(bound) = node.minimum.filter(|bound| number.is_beyond(*bound, false)) {
        out.fault(format!(
            "{} is less than the minimum {}{}",
            quoted(value),
            bound.value,
            exclusive(bound)
        ));
    }
    if let Some(bound) = node.maximum.filter(|bound| number.is_beyond(*bound, true)) {
        out.fault(format!(
            "{} is more than the maximum {}{}",
            quoted(value),
            bound.value,
            exclusive(bound)
        ));
    }
    if let Some(factor) = node.multiple_of.filter(|factor| !number.is_multiple_of(*factor)) {
        out.fault(format!("{} is not a multiple of {factor}", quoted(value)));
    }
    if let Some(format) = node
        .format
        .as_ref()
        .filter(|format| !format.admits_number(number))
    {
        out.fault(format!("{} is out of range for {}", quoted(value), format.name()));
    }
}

fn array(node: &Node, items: &[Value], out: &mut Findings) {
    let (least, most) = node.items_count;
    range(items.len() as u64, least, most, ("item", "items"), out);
    if node.unique_items
        && let Some(at) = super::unique::first_duplicate(items)
    {
        out.within(&PathSegment::Index(at), |out| out.fault("is a duplicate item"));
    }
    if let Some(known) = &node.items {
        for (at, item) in items.iter().enumerate() {
            out.within(&PathSegment::Index(at), |out| check(known, item, out));
        }
    }
}

fn object(node: &Node, map: &Map<String, Value>, out: &mut Findings) {
    let (least, most) = node.fields_count;
    range(map.len() as u64, least, most, ("field", "fields"), out);
    for (name, value) in map {
        match (node.properties.get(name), &node.additional) {
            (Some(known), _) => out.within(&PathSegment::Field(name), |out| check(known, value, out)),
            (None, Additional::Schema(known)) => {
                out.within(&PathSegment::Key(name), |out| check(known, value, out));
            }
            (None, Additional::Forbidden) => {
                out.within(&PathSegment::Field(name), |out| out.fault("is not allowed"));
            }
            (None, Additional::Any | Additional::Unspecified) => {}
        }
    }
    for name in node.required.iter().filter(|name| !map.contains_key(*name)) {
        out.within(&PathSegment::Field(name), |out| out.fault("is required"));
    }
}
