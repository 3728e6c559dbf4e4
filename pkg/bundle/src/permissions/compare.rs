//! Differences between two lists of rules.

use std::collections::{BTreeMap, BTreeSet};

use super::{PolicyRule, RequiredRule, RuleScope};

/// Maximum number of single rights that a list of rules is split into; further rules are compared whole.
pub(super) const MAX_SINGLES: usize = 20_000;

/// Rules by scope.
pub type GrantedRules = BTreeMap<RuleScope, Vec<PolicyRule>>;

/// Returns the single rights of `required` that no rule of `granted` includes. A rule with too many single rights is returned whole;
/// see [`PolicyRule::is_single`].
pub fn lacking(granted: &GrantedRules, required: &[RequiredRule]) -> Vec<RequiredRule> {
    lacking_within(granted, required, &mut { MAX_SINGLES })
}

/// Does the work of [`lacking`] for one of several lists that share `room` for single rights.
pub(super) fn lacking_within(
    granted: &GrantedRules,
    required: &[RequiredRule],
    room: &mut usize,
) -> Vec<RequiredRule> {
    let has = |scope: &RuleScope, right: &PolicyRule| {
        let everywhere = granted.get(&RuleScope::Cluster);
        let here = granted.get(scope);
        everywhere
            .into_iter()
            .chain(here)
            .flatten()
            .any(|rule| rule.covers(right))
    };
    let mut lacking = Vec::new();
    for RequiredRule { scope, rule } in required {
        if has(scope, rule) {
            continue;
        }
        let count = rule.count();
        if count > *room {
            lacking.push(RequiredRule {
                scope: scope.clone(),
                rule: rule.clone(),
            });
            continue;
        }
        *room -= count;
        let rights = singles(rule).into_iter().filter(|right| !has(scope, right));
        lacking.extend(rights.map(|rule| RequiredRule {
            scope: scope.clone(),
            rule,
        }));
    }
    lacking
}

/// Splits a rule into one for each verb on each resource, name or path.
fn singles(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |text: &String| BTreeSet::from([text.clone()]);
    let mut all = Vec::new();
    for verb in &rule.verbs {
        for url in &rule.non_resource_urls {
            all.push(PolicyRule {
                non_resource_urls: one(url),
                verbs: one(verb),
                ..PolicyRule::default()
            });
        }
        for group in &rule.api_groups {
            for resource in &rule.resources {
                let single = PolicyRule {
                    api_groups: one(group),
                    resources: one(resource),
                    verbs: one(verb),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    all.push(single);
                    continue;
                }
                all.extend(rule.resource_names.iter().map(|name| PolicyRule {
                    resource_names: one(name),
                    ..single.clone()
                }));
            }
        }
    }
    all
}

/// Joins single rights into rules, as an administrator would write them.
pub fn merged(rights: Vec<RequiredRule>) -> Vec<RequiredRule> {
    // Each pass joins rules that differ in one field.
    let passes: [fn(&mut PolicyRule) -> &mut BTreeSet<String>; 4] = [
        |rule| &mut rule.verbs,
        |rule| &mut rule.resource_names,
        |rule| &mut rule.resources,
        |rule| &mut rule.non_resource_urls,
    ];
    passes.into_iter().fold(rights, |rights, field| {
        let mut joined: BTreeMap<RequiredRule, BTreeSet<String>> = BTreeMap::new();
        for mut right in rights {
            // A rule without names covers all objects and is not joined with a rule for some.
            let values = std::mem::take(field(&mut right.rule));
            let key = if values.is_empty() {
                right
            } else {
                field(&mut right.rule).insert(String::new());
                right
            };
            joined.entry(key).or_default().extend(values);
        }
        let restore = |(mut right, values): (RequiredRule, BTreeSet<String>)| {
            *field(&mut right.rule) = values;
            right
        };
        joined.into_iter().map(restore).collect()
    })
}

/// Returns the rights of `after` that `before` does not include, as rules.
pub fn gained(before: &[RequiredRule], after: &[RequiredRule]) -> Vec<RequiredRule> {
    merged(lacking(&by_scope(before), after))
}

/// Groups rules by their scope.
pub(super) fn by_scope<'a>(rules: impl IntoIterator<Item = &'a RequiredRule>) -> GrantedRules {
    let mut granted = GrantedRules::new();
    for required in rules {
        granted
            .entry(required.scope.clone())
            .or_default()
            .push(required.rule.clone());
    }
    granted
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rules(rules: &Value) -> Vec<RequiredRule> {
        let place = |rule| RequiredRule {
            scope: RuleScope::Cluster,
            rule: PolicyRule::read(rule),
        };
        rules.as_array().unwrap().iter().map(place).collect()
    }

    #[test]
    fn only_new_rights_are_gained() {
        let before =
            rules(&json!([{"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"]}]));
        let after = rules(&json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete", "get", "list"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]},
        ]));
        let shown = |rules: Vec<RequiredRule>| {
            let texts = rules.iter().map(|required| json!(required.rule).to_string());
            texts.collect::<Vec<String>>()
        };
        assert_eq!(
            shown(gained(&before, &after)),
            [
                r#"{"apiGroups":[""],"resources":["pods"],"verbs":["delete"]}"#,
                r#"{"apiGroups":["apps"],"resources":["deployments"],"verbs":["*"]}"#,
            ]
        );
        assert_eq!(
            shown(gained(&after, &before)),
            [r#"{"apiGroups":[""],"resources":["secrets"],"verbs":["get","list"]}"#]
        );
        assert_eq!(gained(&after, &after), []);
    }

    #[test]
    fn huge_rules_are_compared_whole() {
        let many = |prefix: &str| (0..60).map(|n| format!("{prefix}{n}")).collect::<Vec<_>>();
        let huge = rules(&json!([{"apiGroups": many("g"), "resources": many("r"), "verbs": many("v")}]));
        let found = lacking(&GrantedRules::new(), &huge);
        assert_eq!(found, huge);
        assert!(!found[0].rule.is_single());
        let empty = GrantedRules::new();
        let small = rules(&json!([{"apiGroups": ["a"], "resources": ["b"], "verbs": ["c"]}]));
        assert!(lacking(&empty, &small)[0].rule.is_single());
    }
}
