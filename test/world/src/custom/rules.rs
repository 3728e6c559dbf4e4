//! CEL rules that olm-bundle leaves out: those that compare an object with its former state (`oldSelf`), and those that
//! search by pattern (`find`).

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::extractors::This;
use cel::{Context, Value as Cel};
use olm_bundle::crd_schema::escape;
use olm_cel::{Expression, Mention};
use regex::Regex;
use serde_json::Value;

use crate::status::Cause;

/// Rules of a schema and of the schemas below it.
#[derive(Debug, Default)]
pub(super) struct MoreRules {
    rules: Vec<Rule>,
    fields: BTreeMap<String, Self>,
    /// Elements of a list, or values of a map.
    element: Option<Box<Self>>,
    /// Keys of a list's elements.
    keys: Vec<String>,
}

#[derive(Debug)]
struct Rule {
    expression: Expression,
    message: String,
    /// True if the rule needs the former state.
    transition: bool,
}

impl MoreRules {
    pub(super) fn compile(schema: &Value) -> Self {
        let rules = schema["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten();
        let rules = rules.filter_map(|rule| {
            let source = rule["rule"].as_str()?.trim();
            let expression = Expression::parse(source).ok()?;
            let message = rule["message"]
                .as_str()
                .map_or_else(|| format!("failed rule: {source}"), ToOwned::to_owned);
            let mentions = expression.mentions();
            let finds = mentions
                .iter()
                .any(|mention| matches!(mention, Mention::Call("find", _)));
            (finds || expression.names("oldSelf")).then_some(Rule {
                transition: expression.names("oldSelf"),
                expression,
                message,
            })
        });
        let fields = schema["properties"].as_object().into_iter().flatten();
        let fields = fields
            .map(|(name, field)| (name.clone(), Self::compile(field)))
            .filter(|(_, below)| !below.is_empty());
        let keys: Vec<String> = schema["x-kubernetes-list-map-keys"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|key| key.as_str().map(ToOwned::to_owned))
            .collect();
        let element = match (schema.get("items"), schema.get("additionalProperties")) {
            (Some(items), _) => Some(Self::compile(items)),
            (_, Some(values)) => Some(Self::compile(values)),
            _ => None,
        };
        Self {
            rules: rules.collect(),
            fields: fields.collect(),
            element: element.filter(|below| !below.is_empty()).map(Box::new),
            keys,
        }
    }

    fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.fields.is_empty() && self.element.is_none()
    }
}

/// Adds a cause for each rule that an object breaks; `old` is its former state.
pub(super) fn check(rules: &MoreRules, new: &Value, old: Option<&Value>, out: &mut Vec<Cause>) {
    walk(rules, new, old, "", out);
}

fn walk(rules: &MoreRules, new: &Value, old: Option<&Value>, path: &str, out: &mut Vec<Cause>) {
    for rule in &rules.rules {
        let holds = match old {
            None => rule.transition || evaluate(rule, new, None),
            // A value that stays as it was may break a rule that came later.
            Some(old) => !rule.transition && new == old || evaluate(rule, new, Some(old)),
        };
        if !holds {
            out.push(Cause::invalid(path, new, &rule.message));
        }
    }
    let below = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    for (name, rules) in &rules.fields {
        if let Some(new) = new.get(name) {
            walk(rules, new, old.and_then(|old| old.get(name)), &below(name), out);
        }
    }
    let Some(element) = &rules.element else { return };
    match new {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let same = |other: &&Value| rules.keys.iter().all(|key| other.get(key) == item.get(key));
                let old = old.and_then(Value::as_array).filter(|_| !rules.keys.is_empty());
                let old = old.and_then(|old| old.iter().find(same));
                walk(element, item, old, &format!("{path}[{at}]"), out);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                walk(
                    element,
                    value,
                    old.and_then(|old| old.get(name)),
                    &below(name),
                    out,
                );
            }
        }
        _ => {}
    }
}

fn evaluate(rule: &Rule, new: &Value, old: Option<&Value>) -> bool {
    let mut context = Context::with_env(olm_cel::environment());
    // The name is valid, so the function can always be added.
    let _ = context.add_function("find", find);
    context.add_variable_from_value("self", olm_cel::value(&escaped(new)));
    if let Some(old) = old {
        context.add_variable_from_value("oldSelf", olm_cel::value(&escaped(old)));
    }
    matches!(rule.expression.evaluate(&context), Ok(Cel::Bool(true)))
}

/// Kubernetes' function `find`: the first match of a pattern, or an empty text.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the library passes arguments by value"
)]
fn find(This(text): This<Arc<String>>, pattern: Arc<String>) -> String {
    let pattern = Regex::new(&pattern).ok();
    let found = pattern.and_then(|pattern| pattern.find(&text).map(|found| found.as_str().to_owned()));
    found.unwrap_or_default()
}

/// Returns a value with the names of fields as rules write them.
fn escaped(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(name, value)| (escape(name).unwrap_or_else(|| name.clone()), escaped(value)));
            Value::Object(fields.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(escaped).collect()),
        other => other.clone(),
    }
}
