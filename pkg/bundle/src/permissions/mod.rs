//! Which rights it takes to install, keep up and remove a list of objects.
//!
//! Besides the objects' own verbs there is what the API server demands of whoever hands out rights: a role
//! can only be written by somebody who has all that it grants, or may `escalate`; a binding by somebody
//! who has all of the role's rights, or may `bind` it.

mod resource;
mod rule;

use std::collections::{BTreeMap, BTreeSet};

use olm_text::object::{ObjectId, metadata_name, text};
use serde_json::Value;

pub use resource::Resource;
pub use rule::PolicyRule;

/// Verbs on every object by its name. `create` needs a rule of its own, because it cannot be limited to names.
const VERBS: [&str; 4] = ["delete", "get", "patch", "update"];
/// Most rules among which those granted by others are looked for.
const MAX_REDUCED: usize = 4000;
const RBAC: &str = "rbac.authorization.k8s.io";

/// Scope of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleScope {
    /// The whole cluster: a `ClusterRole` with a `ClusterRoleBinding`.
    Cluster,
    /// One namespace: a `Role`.
    Namespace(String),
}

/// A rule, and where it is needed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequiredRule {
    /// Scope of the rule.
    pub scope: RuleScope,
    /// The required rule.
    pub rule: PolicyRule,
}

/// Ways past the API server's check against escalation for the account that writes the objects' roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escalation {
    /// The account has every right that the roles grant. It hands out nothing beyond the bundle's own rights.
    #[default]
    Rules,
    /// The account has `escalate` and `bind` on these roles: short, but the account can rewrite them.
    Verbs,
}

/// Options for the required rights.
#[derive(Clone, Copy, Default)]
pub struct PermissionOptions<'a> {
    /// Way past the check against escalation.
    pub escalation: Escalation,
    /// Name of the `ClusterObjectSet` that will own the objects: to name it as an owner that blocks deletion, its
    /// `finalizers` must be writable where the API server enforces that. `Some("")` is any.
    pub owner: Option<&'a str>,
    /// The resource of an `apiVersion` and `kind`, by discovery; [`Resource::of_kind`] where it has none.
    pub resources: Option<&'a FindResource>,
}

/// The resource of an `apiVersion` and a `kind`, if it is known.
pub type FindResource = dyn Fn(&str, &str) -> Option<Resource>;

/// The rights that installing, upgrading and removing `objects` takes: sorted, without what another
/// required rule grants already. Objects without a name or kind add nothing.
pub fn required_rules(objects: &[Value], options: &PermissionOptions<'_>) -> Vec<RequiredRule> {
    let mut rules = own_verbs(objects, options);
    for object in objects {
        rules.extend(handing_out(object, objects, options.escalation));
    }
    if let Some(owner) = options.owner {
        let names = Some(owner).filter(|name| !name.is_empty());
        rules.push(RequiredRule {
            scope: RuleScope::Cluster,
            rule: PolicyRule::on(GROUP, "clusterobjectsets/finalizers", names, &["update"]),
        });
    }
    reduce(rules)
}

const GROUP: &str = "olm.operatorframework.io";

/// Returns the scope of an object of a namespaced resource; the cluster if the object has no namespace.
fn scope(object: &Value, namespaced: bool) -> RuleScope {
    match text(object, "/metadata/namespace") {
        namespace if namespaced && !namespace.is_empty() => RuleScope::Namespace(namespace.to_owned()),
        _ => RuleScope::Cluster,
    }
}

fn own_verbs(objects: &[Value], options: &PermissionOptions<'_>) -> Vec<RequiredRule> {
    let mut named: BTreeMap<(RuleScope, &str, String), BTreeSet<&str>> = BTreeMap::new();
    for object in objects {
        let (kind, name) = (text(object, "/kind"), metadata_name(object));
        if kind.is_empty() || name.is_empty() {
            continue;
        }
        let resource = options
            .resources
            .and_then(|find| find(text(object, "/apiVersion"), kind))
            .unwrap_or_else(|| Resource::of_kind(kind));
        let key = (
            scope(object, resource.namespaced),
            ObjectId::of(object).group,
            resource.plural,
        );
        named.entry(key).or_default().insert(name);
    }
    let mut out = Vec::new();
    let mut created: BTreeMap<(RuleScope, &str), PolicyRule> = BTreeMap::new();
    for ((scope, group, plural), names) in named {
        let rule = PolicyRule::on(group, &plural, names, &VERBS);
        let create = created
            .entry((scope.clone(), group))
            .or_insert_with(|| PolicyRule::on(group, &plural, [], &["create"]));
        create.resources.insert(plural);
        out.push(RequiredRule { scope, rule });
    }
    out.extend(
        created
            .into_iter()
            .map(|((scope, _), rule)| RequiredRule { scope, rule }),
    );
    out
}

/// Returns the rules that the API server requires if `object` hands out rights.
fn handing_out(object: &Value, objects: &[Value], escalation: Escalation) -> Vec<RequiredRule> {
    if ObjectId::of(object).group != RBAC {
        return Vec::new();
    }
    let require = |scope, rule| RequiredRule { scope, rule };
    match text(object, "/kind") {
        kind @ ("Role" | "ClusterRole") => {
            let scope = scope(object, kind == "Role");
            // The rights of an aggregated role are not known beforehand.
            let aggregated = object.get("aggregationRule").is_some_and(|rule| !rule.is_null());
            if escalation == Escalation::Verbs || aggregated {
                let plural = Resource::of_kind(kind).plural;
                let rule = PolicyRule::on(RBAC, &plural, [metadata_name(object)], &["escalate"]);
                return vec![require(scope, rule)];
            }
            let rules = object.get("rules").and_then(Value::as_array);
            rules
                .into_iter()
                .flatten()
                .map(|rule| require(scope.clone(), PolicyRule::read(rule)))
                .collect()
        }
        kind @ ("RoleBinding" | "ClusterRoleBinding") => {
            let scope = scope(object, kind == "RoleBinding");
            let (role_kind, role) = (text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
            let is_bound = |other: &Value| {
                ObjectId::of(other).group == RBAC
                    && text(other, "/kind") == role_kind
                    && metadata_name(other) == role
                    && (role_kind == "ClusterRole"
                        || text(other, "/metadata/namespace") == text(object, "/metadata/namespace"))
                    && other.get("aggregationRule").is_none_or(Value::is_null)
            };
            // Whoever may write the role because they have its rights may bind it for the same reason.
            if escalation == Escalation::Rules && objects.iter().any(is_bound) {
                return Vec::new();
            }
            let plural = Resource::of_kind(role_kind).plural;
            vec![require(scope, PolicyRule::on(RBAC, &plural, [role], &["bind"]))]
        }
        _ => Vec::new(),
    }
}

/// Sorted, without the empty and without what others cover; a cluster-wide right holds in every namespace.
fn reduce(mut rules: Vec<RequiredRule>) -> Vec<RequiredRule> {
    rules.retain(|required| !required.rule.is_empty());
    rules.sort();
    rules.dedup();
    // Compares every pair of rules; real bundles have a few hundred.
    if rules.len() > MAX_REDUCED {
        return rules;
    }
    let mut kept: Vec<RequiredRule> = Vec::with_capacity(rules.len());
    for required in rules {
        let covers = |wide: &RequiredRule, narrow: &RequiredRule| {
            (wide.scope == RuleScope::Cluster || wide.scope == narrow.scope) && wide.rule.covers(&narrow.rule)
        };
        if kept.iter().any(|other| covers(other, &required)) {
            continue;
        }
        kept.retain(|other| !covers(&required, other));
        kept.push(required);
    }
    kept
}

#[cfg(test)]
mod tests;
