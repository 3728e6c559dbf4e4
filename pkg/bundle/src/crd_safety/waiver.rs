//! Accepted findings: one rule at one path each.

use std::collections::BTreeSet;

use super::Finding;

/// The rule for removed fields.
const REMOVAL: &str = "existingFieldRemoval";

/// Accepted finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiver {
    /// The rule's name, as in [`Finding::rule`].
    pub rule: String,
    /// The field without its version (`^.spec.size`); empty if the rule concerns the whole CRD.
    pub path: String,
}

/// Fields that a CRD loses, each with the version that loses it.
pub struct Removals<'a>(BTreeSet<(&'a str, &'a str)>);

impl<'a> Removals<'a> {
    /// Returns the removed fields that the findings of one CRD name.
    pub fn of(findings: &'a [Finding]) -> Self {
        let removed = findings.iter().filter(|finding| finding.rule == REMOVAL);
        Self(removed.map(place).collect())
    }
}

impl Waiver {
    /// Returns the waiver that accepts one finding.
    pub fn of(finding: &Finding) -> Self {
        Self {
            rule: finding.rule.clone(),
            path: place(finding).1.to_owned(),
        }
    }

    /// Returns true if the waiver accepts `finding`. `removals` are those of all findings of the CRD.
    ///
    /// A waiver for the removal of a field accepts every finding at or below the field, because a removed field is also compared with
    /// nothing. It does so only in a version that loses the field: the field may stay in another version and change there.
    pub fn covers(&self, finding: &Finding, removals: &Removals<'_>) -> bool {
        let (version, field) = place(finding);
        if self.rule == REMOVAL {
            let within = field
                .strip_prefix(&self.path)
                .is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']));
            return within && removals.0.contains(&(version, self.path.as_str()));
        }
        finding.rule == self.rule && field == self.path
    }
}

/// Removes the waived findings of one CRD. Returns the rest, and for every waiver true if it matched a finding.
pub fn waive(findings: Vec<Finding>, waivers: &[Waiver]) -> (Vec<Finding>, Vec<bool>) {
    let removals = Removals::of(&findings);
    let mut met = vec![false; waivers.len()];
    let mut is_left = |finding: &Finding| {
        let mut left = true;
        for (waiver, met) in waivers.iter().zip(&mut met) {
            if waiver.covers(finding, &removals) {
                *met = true;
                left = false;
            }
        }
        left
    };
    let is_left: Vec<bool> = findings.iter().map(&mut is_left).collect();
    let left = findings.into_iter().zip(is_left);
    let left = left
        .filter(|(_, is_left)| *is_left)
        .map(|(finding, _)| finding)
        .collect();
    (left, met)
}

/// Returns the version and the field of a finding; both are empty for the whole CRD.
///
/// Of a pair of versions (`v1alpha1 -> v1`) it is the second one: a field of the first one that the second one lost is compared with
/// nothing. The note on a removed conversion webhook stays part of it and makes it no version: the webhook may have mapped the field of
/// the first version to another one of the second, so the removal does not explain that loss.
fn place(finding: &Finding) -> (&str, &str) {
    if let Some((head, field)) = finding.path.split_once(": ") {
        return (head.rsplit(" -> ").next().unwrap_or(head), field);
    }
    match finding.message.strip_prefix("removed field : ") {
        Some(place) if finding.rule == REMOVAL => place
            .find(".^")
            .and_then(|at| Some((place.get(..at)?, place.get(at + 1..)?)))
            .unwrap_or_default(),
        _ => ("", ""),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Waiver, waive};
    use crate::crd_safety::{Rules, check};

    fn crd(spec: &Value) -> Value {
        crd_of(&[("v1", spec)], "None")
    }

    /// Returns a CRD with served versions, each with the fields of its spec.
    fn crd_of(versions: &[(&str, &Value)], strategy: &str) -> Value {
        let version = |(name, spec): &(&str, &Value)| {
            json!({"name": name, "served": true, "storage": *name == "v1", "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}}})
        };
        let versions: Vec<Value> = versions.iter().map(version).collect();
        json!({"apiVersion": "apiextensions.k8s.io/v1",
            "spec": {"scope": "Namespaced", "conversion": {"strategy": strategy}, "versions": versions}})
    }

    /// Returns the findings that remain with a waiver for the removal of `path`, and true if the waiver matched a finding.
    fn without(path: &str, old: &Value, new: &Value) -> (Vec<String>, bool) {
        let (left, met) = waive(
            check(old, new, Rules::Ours),
            &[waiver("existingFieldRemoval", path)],
        );
        (left.iter().map(ToString::to_string).collect(), met[0])
    }

    fn waiver(rule: &str, path: &str) -> Waiver {
        Waiver {
            rule: rule.to_owned(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn one_rule_at_one_place() {
        let old = crd(&json!({"a": {"type": "string", "default": "x"}, "b": {"type": "string"}}));
        let new =
            crd(&json!({"a": {"type": "string", "maxLength": 3}, "b": {"type": "string", "maxLength": 3}}));
        let findings = check(&old, &new, Rules::Ours);
        assert_eq!(findings.len(), 3);
        let (left, met) = waive(
            findings,
            &[waiver("maxLength", "^.spec.a"), waiver("minLength", "^.spec.a")],
        );
        assert_eq!(met, [true, false]);
        let left: Vec<_> = left.iter().map(|f| (f.rule.as_str(), f.path.as_str())).collect();
        assert_eq!(left, [("default", "v1: ^.spec.a"), ("maxLength", "v1: ^.spec.b")]);
    }

    #[test]
    fn a_removal_covers_the_fields_below() {
        let old = crd(
            &json!({"gone": {"type": "object", "properties": {"x": {"type": "string", "enum": ["a"]}}},
                              "goner": {"type": "string"}, "kept": {"type": "string"}}),
        );
        let new = crd(&json!({"kept": {"type": "integer"}}));
        let waivers = [
            waiver("existingFieldRemoval", "^.spec.gone"),
            waiver("existingFieldRemoval", "^.spec.kept"),
        ];
        let (left, met) = waive(check(&old, &new, Rules::Ours), &waivers);
        assert_eq!(met, [true, false], "the type of one has changed only");
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        assert_eq!(
            left,
            [
                "existingFieldRemoval: removed field : v1.^.spec.goner",
                "v1: ^.spec.goner: type: type changed : \"string\" -> \"\"",
                "v1: ^.spec.kept: type: type changed : \"string\" -> \"integer\"",
            ]
        );
    }
    #[test]
    fn a_removal_covers_nothing_in_a_version_that_keeps_the_field() {
        let group = |inner: Value| json!({"group": {"type": "object", "properties": inner}});
        let full = group(json!({"a": {"type": "string"}, "b": {"type": "integer"}}));
        let old = crd_of(&[("v1alpha1", &full), ("v1", &full)], "Webhook");
        let changed = group(json!({"b": {"type": "string"}}));
        let new = crd_of(&[("v1alpha1", &json!({})), ("v1", &changed)], "Webhook");
        let kept = [
            "existingFieldRemoval: removed field : v1.^.spec.group.a",
            "v1: ^.spec.group.a: type: type changed : \"string\" -> \"\"",
            "v1: ^.spec.group.b: type: type changed : \"integer\" -> \"string\"",
        ];
        let (left, met) = without("^.spec.group", &old, &new);
        assert_eq!((left.as_slice(), met), (kept.map(str::to_owned).as_slice(), true));
        let new = crd_of(&[("v1alpha1", &json!({})), ("v1", &json!({}))], "Webhook");
        assert_eq!(without("^.spec.group", &old, &new), (vec![], true));
    }

    #[test]
    fn a_removal_covers_conversions_to_the_version_that_loses_the_field() {
        let (size, none) = (json!({"size": {"type": "integer"}}), json!({}));
        let old = crd_of(&[("v1alpha1", &size), ("v1", &size)], "None");
        let new = crd_of(&[("v1alpha1", &size), ("v1", &none)], "None");
        let pair = "v1alpha1 -> v1: ^.spec.size: type: type changed : \"integer\" -> \"\"";
        let found: Vec<String> = check(&old, &new, Rules::Ours)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(found.iter().any(|finding| finding == pair), "{found:?}");
        assert_eq!(without("^.spec.size", &old, &new), (vec![], true));
        // v1alpha1 loses the field, and v1beta1 starts to differ from v1.
        let three = |first: &Value, second: &Value, third: &Value| {
            crd_of(&[("v1alpha1", first), ("v1beta1", second), ("v1", third)], "None")
        };
        let old = three(&size, &none, &none);
        let new = three(&none, &size, &none);
        let pair = "v1beta1 -> v1: ^.spec.size: type: type changed : \"integer\" -> \"\"";
        let (left, met) = without("^.spec.size", &old, &new);
        assert!(met && left.iter().any(|finding| finding == pair), "{left:?}");
    }

    #[test]
    fn a_removal_does_not_cover_the_loss_of_a_conversion_webhook() {
        let (size, none) = (json!({"size": {"type": "integer"}}), json!({}));
        let old = crd_of(&[("v1alpha1", &size), ("v1", &size)], "Webhook");
        let new = crd_of(&[("v1alpha1", &size), ("v1", &none)], "None");
        let lost = "v1alpha1 -> v1 without the conversion webhook: ^.spec.size: type: type changed : \"integer\" -> \"\"";
        assert_eq!(without("^.spec.size", &old, &new), (vec![lost.to_owned()], true));
    }
}
