//! `allOf`, `anyOf`, `oneOf` and `not`: schemas that only restrict, each compared as a whole.

use serde_json::{Map, Value};

use super::effect::{Effect, truth};
use super::{differences, flatten};

use Effect::{Looser, Same, Unsafe};

/// Maximum number of pairs of a value of the old keyword and one of the new keyword, so that the comparison of hostile schemas ends;
/// changes of real CRDs have less than 100. All nested values count: alternatives in alternatives are compared in pairs, too.
const MAX_PAIRS: usize = 10_000;

/// Returns the effect of the change of `key`, one of the four.
pub(super) fn effect(key: &str, old: &Value, new: &Value) -> Effect {
    let (was, is) = (bare(old.get(key)), bare(new.get(key)));
    if was == is || (key == "anyOf" && both_int_or_string(old, new, &was, &is)) {
        return Same;
    }
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    if empty(&is) {
        return Looser;
    }
    if empty(&was) {
        return Unsafe;
    }
    if count(&was).saturating_mul(count(&is)) > MAX_PAIRS {
        return Unsafe;
    }
    let (then, now) = (list(&was), list(&is));
    let admits = |wide: &Value, narrow: &Value| covers(narrow, wide);
    let looser = match key {
        // Each requirement existed before or is weaker.
        "allOf" => now.iter().all(|now| then.iter().any(|then| admits(now, then))),
        // Every former way to satisfy the requirement still exists.
        "anyOf" => then.iter().all(|then| now.iter().any(|now| admits(now, then))),
        // The forbidden values were forbidden before.
        "not" => admits(&was, &is),
        // With `oneOf`, more alternatives can allow less.
        _ => false,
    };
    if looser { Looser } else { Unsafe }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns the number of values in `value`, including itself.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count).sum::<usize>() + 1,
        Value::Object(members) => members.values().map(count).sum::<usize>() + 1,
        _ => 1,
    }
}

/// Returns true if `wide` certainly admits every value that `narrow` admits.
fn covers(narrow: &Value, wide: &Value) -> bool {
    let (old, new) = (flatten::flatten(narrow), flatten::flatten(wide));
    // A restriction of a field that only one of them has is a restriction that the other lacks.
    new.keys().all(|path| old.contains_key(path))
        && old.keys().all(|path| new.contains_key(path))
        && differences("", &old, &new, Some(Looser)).is_empty()
}

/// Removes keys that only describe, such as titles and examples.
fn bare(value: Option<&Value>) -> Value {
    match value {
        Some(Value::Object(map)) => Value::Object(
            map.iter()
                .filter(|(key, _)| {
                    !matches!(key.as_str(), "description" | "title" | "example" | "externalDocs")
                })
                .map(|(key, value)| match value {
                    // Names of fields, not keys of a schema.
                    Value::Object(fields) if key == "properties" => {
                        let fields: Map<String, Value> = fields
                            .iter()
                            .map(|(name, field)| (name.clone(), bare(Some(field))))
                            .collect();
                        (key.clone(), Value::Object(fields))
                    }
                    _ => (key.clone(), bare(Some(value))),
                })
                .collect(),
        ),
        Some(Value::Array(list)) => list.iter().map(|item| bare(Some(item))).collect(),
        Some(other) => other.clone(),
        None => Value::Null,
    }
}

/// Returns true if the alternatives only repeat what `x-kubernetes-int-or-string` means.
fn both_int_or_string(old: &Value, new: &Value, was: &Value, is: &Value) -> bool {
    let flag = |schema: &Value| truth(schema.get("x-kubernetes-int-or-string"));
    let spelled = serde_json::json!([{"type": "integer"}, {"type": "string"}]);
    let known = |value: &Value| value.is_null() || *value == spelled;
    flag(old) && flag(new) && known(was) && known(is)
}
