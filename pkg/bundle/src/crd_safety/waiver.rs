//! Accepted findings: one rule at one path each.

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

impl Waiver {
    /// Returns the waiver that accepts one finding.
    pub fn of(finding: &Finding) -> Self {
        Self {
            rule: finding.rule.clone(),
            path: field(finding).to_owned(),
        }
    }

    /// Returns true if the waiver accepts `finding`.
    pub fn covers(&self, finding: &Finding) -> bool {
        let field = field(finding);
        if self.rule == REMOVAL {
            // A removed field is also compared with nothing, as is everything below it.
            return field == self.path
                || field
                    .strip_prefix(&self.path)
                    .is_some_and(|below| below.starts_with(['.', '[']));
        }
        finding.rule == self.rule && field == self.path
    }
}

/// Removes the waived findings. Returns the rest, and for every waiver true if it matched a finding.
///
/// A waiver for the removal of a field applies only to a removed field, not to a changed one.
pub fn waive(findings: Vec<Finding>, waivers: &[Waiver]) -> (Vec<Finding>, Vec<bool>) {
    let is_real = |waiver: &Waiver| {
        waiver.rule != REMOVAL
            || findings
                .iter()
                .any(|finding| finding.rule == REMOVAL && field(finding) == waiver.path)
    };
    let real: Vec<bool> = waivers.iter().map(is_real).collect();
    let mut met = vec![false; waivers.len()];
    let mut left = Vec::new();
    for finding in findings {
        let mut covered = false;
        for ((waiver, met), real) in waivers.iter().zip(&mut met).zip(&real) {
            if *real && waiver.covers(&finding) {
                *met = true;
                covered = true;
            }
        }
        if !covered {
            left.push(finding);
        }
    }
    (left, met)
}

/// Returns the field of a finding without its version; empty for the whole CRD.
fn field(finding: &Finding) -> &str {
    if let Some((_, field)) = finding.path.split_once(": ") {
        return field;
    }
    match finding.message.strip_prefix("removed field : ") {
        Some(place) if finding.rule == REMOVAL => place
            .find(".^")
            .and_then(|at| place.get(at + 1..))
            .unwrap_or_default(),
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Waiver, waive};
    use crate::crd_safety::{Rules, check};

    fn crd(spec: &Value) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": {"scope": "Namespaced", "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}}}]}})
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
}
