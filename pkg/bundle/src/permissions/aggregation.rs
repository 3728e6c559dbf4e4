//! Selectors of aggregated roles.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde::Deserialize as _;
use serde_json::Value;

/// Returns true if kube-controller-manager fills the role with the rules of other roles, and overwrites rules that others write.
pub fn is_aggregated(role: &Value) -> bool {
    role.get("aggregationRule").is_some_and(|rule| !rule.is_null())
}

/// Returns the selectors of an aggregated role. API servers refuse a selector that cannot be read.
pub(super) fn selectors(role: &Value) -> Vec<LabelSelector> {
    let selectors = role.pointer("/aggregationRule/clusterRoleSelectors");
    let selectors = selectors.and_then(Value::as_array).into_iter().flatten();
    selectors
        .filter_map(|selector| LabelSelector::deserialize(selector).ok())
        .collect()
}

/// Returns the labels of an object with their values.
pub(super) fn labels(object: &Value) -> impl Iterator<Item = (&str, &str)> {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// Returns true if the selector selects `role`.
pub(super) fn selects(selector: &LabelSelector, role: &Value) -> bool {
    let label = |wanted: &str| labels(role).find_map(|(key, value)| (key == wanted).then_some(value));
    let meets = |requirement: &LabelSelectorRequirement| {
        let value = label(&requirement.key);
        let listed = |value: &str| requirement.values.iter().flatten().any(|item| item == value);
        match requirement.operator.as_str() {
            "In" => value.is_some_and(listed),
            "NotIn" => !value.is_some_and(listed),
            "DoesNotExist" => value.is_none(),
            _ => value.is_some(),
        }
    };
    let mut equal = selector.match_labels.iter().flatten();
    equal.all(|(key, value)| label(key) == Some(value))
        && selector.match_expressions.iter().flatten().all(meets)
}

/// Returns the selector in the form that kubectl reads; an empty text if it selects everything.
pub(super) fn shown(selector: &LabelSelector) -> String {
    let equal = selector.match_labels.iter().flatten();
    let equal = equal.map(|(key, value)| format!("{key}={value}"));
    let requirement = |requirement: &LabelSelectorRequirement| {
        let key = &requirement.key;
        let values = requirement.values.as_deref().unwrap_or_default().join(",");
        match requirement.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        }
    };
    let expressions = selector.match_expressions.iter().flatten().map(requirement);
    equal.chain(expressions).collect::<Vec<String>>().join(",")
}
