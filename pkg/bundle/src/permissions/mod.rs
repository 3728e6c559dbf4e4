//! Permissions required to install, maintain and remove a list of objects, and those that the objects [grant](grants()).
//!
//! The required ones include the permissions that the API server requires to grant permissions: only an account that has all rights
//! of a role, or may `escalate`, can write the role. Only an account that has all rights of a role, or may `bind` it,
//! can write a binding to the role.

mod aggregation;
mod compare;
mod grants;
mod holder;
mod resource;
mod rule;

use std::collections::{BTreeMap, BTreeSet};

use olm_text::object::{ObjectId, metadata_name, text};
use serde_json::Value;

pub use aggregation::is_aggregated;
pub use compare::{GrantedRules, gained, lacking, merged};
pub use grants::{Grant, Grants, gained_grants, grants};
pub use holder::{Holder, HolderKind};
pub use resource::Resource;
pub use rule::PolicyRule;

/// Verbs on every object by its name. `create` needs a rule of its own, because it cannot be limited to names.
const VERBS: [&str; 4] = ["delete", "get", "patch", "update"];
/// Maximum number of rules to reduce; the comparison of all pairs is quadratic.
const MAX_REDUCED: usize = 4000;
const RBAC: &str = "rbac.authorization.k8s.io";

/// Scope of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RuleScope {
    /// The whole cluster: a `ClusterRole` with a `ClusterRoleBinding`.
    Cluster,
    /// A namespace: a `Role`.
    Namespace(String),
}

/// A required rule and its scope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequiredRule {
    /// Scope of the rule.
    pub scope: RuleScope,
    /// The required rule.
    pub rule: PolicyRule,
}

/// Ways for the account that writes the objects' roles to pass the API server's check against escalation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escalation {
    /// The account has every right that the roles grant, and can grant no other rights.
    #[default]
    Rules,
    /// The account has `escalate` and `bind` on these roles. The rules are short, but the account can rewrite the
    /// roles.
    Verbs,
}

/// Options for the required rights.
#[derive(Clone, Copy, Default)]
pub struct PermissionOptions<'a> {
    /// Way to pass the check against escalation.
    pub escalation: Escalation,
    /// Name of the `ClusterObjectSet` that will own the objects; `Some("")` is any. An API server may require write
    /// access to its `finalizers` for an owner reference that blocks deletion.
    pub owner: Option<&'a str>,
    /// Looks up the resource of an `apiVersion` and `kind`, by discovery; [`Resource::of_kind`] if it is unknown.
    pub resources: Option<&'a FindResource>,
}

/// Function that returns the resource of an `apiVersion` and a `kind`, if known.
pub type FindResource = dyn Fn(&str, &str) -> Option<Resource>;

/// Returns the rules required to install, upgrade and remove `objects`, sorted and without rules that another one
/// implies. Skips objects without a name or kind.
pub fn required_rules(objects: &[Value], options: &PermissionOptions<'_>) -> Vec<RequiredRule> {
    let mut rules = own_verbs(objects, options);
    for object in objects {
        rules.extend(grant_rules(object, objects, options.escalation));
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

/// Returns the rules that the API server requires if `object` grants rights.
fn grant_rules(object: &Value, objects: &[Value], escalation: Escalation) -> Vec<RequiredRule> {
    if ObjectId::of(object).group != RBAC {
        return Vec::new();
    }
    let require = |scope, rule| RequiredRule { scope, rule };
    match text(object, "/kind") {
        kind @ ("Role" | "ClusterRole") => {
            let scope = scope(object, kind == "Role");
            // The rights of an aggregated role are unknown.
            if escalation == Escalation::Verbs || is_aggregated(object) {
                return vec![require(scope, role_verb(kind, metadata_name(object), "escalate"))];
            }
            role_rules(object)
                .map(|rule| require(scope.clone(), rule))
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
                    && !is_aggregated(other)
            };
            // An account that has the rights of the role may also bind it.
            if escalation == Escalation::Rules && objects.iter().any(is_bound) {
                return Vec::new();
            }
            vec![require(scope, role_verb(role_kind, role, "bind"))]
        }
        _ => Vec::new(),
    }
}

/// Returns the rules of a role.
fn role_rules(role: &Value) -> impl Iterator<Item = PolicyRule> {
    let rules = role.get("rules").and_then(Value::as_array);
    rules.into_iter().flatten().map(PolicyRule::read)
}

/// Returns the rule of `verb` on the role `name`.
fn role_verb(kind: &str, name: &str, verb: &str) -> PolicyRule {
    PolicyRule::on(RBAC, &Resource::of_kind(kind).plural, [name], &[verb])
}

/// Sorts the rules and drops empty ones and those that another rule implies. A cluster-wide rule implies that of a
/// namespace.
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
