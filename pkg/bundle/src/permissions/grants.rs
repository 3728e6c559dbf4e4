//! Rights that the roles and bindings among objects grant: rules, in the scopes of bindings, for the subjects of bindings.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use olm_text::object::{ObjectId, metadata_name, text};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::aggregation::{is_aggregated, labels, selectors, selects, shown};
use super::compare::{MAX_SINGLES, by_scope, lacking_within, merged};
use super::holder::{Holder, HolderKind};
use super::{PolicyRule, RBAC, RequiredRule, RuleScope, reduce, role_rules, role_verb, scope};

/// Maximum number of pairs of a rule and a holder, so that the comparison of hostile objects ends; real bundles have a few hundred.
const MAX_PAIRS: usize = 20_000;

/// Rights that objects grant, by their holders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Rights of subjects, and of the holders of roles that aggregate roles among the objects.
    held: BTreeMap<Holder, Vec<RequiredRule>>,
    /// Rules of each role, which bindings of others may grant.
    offered: BTreeMap<Holder, Vec<RequiredRule>>,
    /// Roles that the objects grant to holders.
    used: BTreeSet<Holder>,
    /// Rights that count without a holder: to bind a role that is not among the objects, to escalate an aggregated role.
    unnamed: Vec<RequiredRule>,
    /// Pairs beyond [`MAX_PAIRS`].
    excess: Option<Excess>,
}

/// Pairs of a rule and a holder that are not compared one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excess {
    /// Right that stands for all.
    right: RequiredRule,
    /// Digest of all pairs in their order: equal digests mean equal rights.
    digest: [u8; 32],
}

/// A right and its holders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// The holders; empty if the objects name none.
    pub holders: BTreeSet<Holder>,
    /// The right.
    pub right: RequiredRule,
}

/// A role and its holders, collected from all objects.
#[derive(Default)]
struct Bound<'a> {
    /// The role; none if it is not among the objects.
    role: Option<&'a Value>,
    /// Scopes of the bindings to the role.
    scopes: Vec<RuleScope>,
    /// Holders of the role, with the scopes in which they hold it.
    holders: Vec<(RuleScope, Holder)>,
}

/// Returns the rights that the roles and role bindings among `objects` grant.
///
/// - A binding grants the rules of its role, in the scope of the binding, to its subjects. For a role that is not among the objects and for
///   an aggregated one, the rules are unknown: the right to bind the role stands for them.
/// - A role with a label for aggregation grants its rules to the holders of the aggregated role.
/// - A role without a holder among the objects offers its rules to those to whom others bind it.
pub fn grants(objects: &[Value]) -> Grants {
    let mut out = Grants::default();
    let mut pairs = 0_usize;
    let (mut excess, mut digest) = (None, Sha256::new());
    for (key, bound) in bound_roles(objects) {
        let content = out.content(&key, &bound);
        if !bound.holders.is_empty() {
            out.used.insert(key);
        }
        let mut rules = None;
        for (scope, holder) in bound.holders {
            pairs = pairs.saturating_add(content.len().max(1));
            if pairs > MAX_PAIRS {
                // A digest of fixed length, so that no two lists of pairs read the same.
                digest.update(rules.get_or_insert_with(|| Sha256::digest(json!(content).to_string())));
                let place = match &scope {
                    RuleScope::Cluster => None,
                    RuleScope::Namespace(namespace) => Some(namespace),
                };
                digest.update(Sha256::digest(json!([place, holder]).to_string()));
                let first = content.get(..1).unwrap_or_default();
                excess = excess.or_else(|| placed(&scope, first).pop());
                continue;
            }
            out.held
                .entry(holder)
                .or_default()
                .extend(placed(&scope, &content));
        }
    }
    out.excess = excess.map(|right| Excess {
        right,
        digest: digest.finalize().into(),
    });
    for rights in out.held.values_mut().chain(out.offered.values_mut()) {
        *rights = reduce(std::mem::take(rights));
    }
    out.unnamed = reduce(out.unnamed);
    out
}

impl Grants {
    /// Returns the rules that holders of the role get, and keeps what the role grants without holders.
    fn content(&mut self, key: &Holder, bound: &Bound<'_>) -> Vec<PolicyRule> {
        let kind = if key.kind == HolderKind::Role {
            "Role"
        } else {
            "ClusterRole"
        };
        if let Some(role) = bound.role {
            let scope = scope(role, kind == "Role");
            if !is_aggregated(role) {
                let rules: Vec<PolicyRule> = role_rules(role).collect();
                self.offered.insert(key.clone(), placed(&scope, &rules));
                return rules;
            }
            let escalate = placed(&scope, &[role_verb(kind, &key.name, "escalate")]);
            for selector in selectors(role) {
                let selected = Holder::new(HolderKind::Selector, &shown(&selector));
                self.held.entry(selected).or_default().extend(escalate.clone());
            }
            self.unnamed.extend(escalate);
        }
        let bind = vec![role_verb(kind, &key.name, "bind")];
        let scopes = bound.scopes.iter();
        self.unnamed.extend(scopes.flat_map(|scope| placed(scope, &bind)));
        bind
    }
}

fn placed(scope: &RuleScope, rules: &[PolicyRule]) -> Vec<RequiredRule> {
    let place = |rule: &PolicyRule| RequiredRule {
        scope: scope.clone(),
        rule: rule.clone(),
    };
    rules.iter().map(place).collect()
}

/// Collects the roles among `objects`, those that bindings name, and their holders.
fn bound_roles(objects: &[Value]) -> BTreeMap<Holder, Bound<'_>> {
    let of_kind = |kinds: [&'static str; 2]| {
        let mut all = objects
            .iter()
            .filter(|object| ObjectId::of(object).group == RBAC)
            .collect::<Vec<_>>();
        all.retain(|object| kinds.contains(&text(object, "/kind")));
        all
    };
    let roles = of_kind(["Role", "ClusterRole"]);
    let aggregated: Vec<(&str, Vec<LabelSelector>)> = roles
        .iter()
        .filter(|role| is_aggregated(role))
        .map(|role| (metadata_name(role), selectors(role)))
        .collect();
    let mut out: BTreeMap<Holder, Bound<'_>> = BTreeMap::new();
    for role in roles {
        let (kind, name) = (text(role, "/kind"), metadata_name(role));
        let bound = out
            .entry(Holder::of_role(kind, text(role, "/metadata/namespace"), name))
            .or_default();
        bound.role = Some(role);
        if kind == "ClusterRole" {
            let selected = aggregated.iter().filter(|(aggregate, selectors)| {
                *aggregate != name && selectors.iter().any(|selector| selects(selector, role))
            });
            let selected = selected.map(|(aggregate, _)| Holder::new(HolderKind::ClusterRole, aggregate));
            let labelled = labels(role).filter_map(|(key, value)| Holder::of_label(key, value));
            bound.holders = labelled
                .chain(selected)
                .map(|holder| (RuleScope::Cluster, holder))
                .collect();
        }
    }
    for binding in of_kind(["RoleBinding", "ClusterRoleBinding"]) {
        let scope = scope(binding, text(binding, "/kind") == "RoleBinding");
        let namespace = text(binding, "/metadata/namespace");
        let role = Holder::of_role(
            text(binding, "/roleRef/kind"),
            namespace,
            text(binding, "/roleRef/name"),
        );
        let bound = out.entry(role).or_default();
        let subjects = binding
            .get("subjects")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let holders = subjects.filter_map(Holder::of_subject);
        bound
            .holders
            .extend(holders.map(|holder| (scope.clone(), holder)));
        bound.scopes.push(scope);
    }
    out
}

/// Returns the rights that `after` grants and `before` does not, sorted by their holders.
pub fn gained_grants(before: &Grants, after: &Grants) -> Vec<Grant> {
    let mut room = MAX_SINGLES;
    let mut named = BTreeSet::new();
    let mut gains: BTreeMap<RequiredRule, BTreeSet<Holder>> = BTreeMap::new();
    let mut gain = |holder: Option<&Holder>, rights: Vec<RequiredRule>| {
        for right in merged(rights) {
            gains.entry(right).or_default().extend(holder.cloned());
        }
    };
    for (holder, rights) in &after.held {
        let included = holder.including();
        let had = by_scope(
            included
                .iter()
                .filter_map(|holder| before.held.get(holder))
                .flatten(),
        );
        let lacking = lacking_within(&had, rights, &mut room);
        named.extend(lacking.iter().cloned());
        gain(Some(holder), lacking);
    }
    // A role under a new name offers nothing new if the former roles had the rules.
    let all_offered = by_scope(before.offered.values().flatten());
    for (role, rights) in after
        .offered
        .iter()
        .filter(|(role, _)| !after.used.contains(role))
    {
        let offered = before.offered.get(role).map(by_scope);
        gain(
            Some(role),
            lacking_within(offered.as_ref().unwrap_or(&all_offered), rights, &mut room),
        );
    }
    let mut unnamed = lacking_within(&by_scope(&before.unnamed), &after.unnamed, &mut room);
    unnamed.retain(|right| !named.contains(right));
    gain(None, unnamed);
    let excess = after.excess.iter().filter(|_| after.excess != before.excess);
    gain(None, excess.map(|excess| excess.right.clone()).collect());
    let mut out: Vec<Grant> = gains
        .into_iter()
        .map(|(right, holders)| Grant { holders, right })
        .collect();
    out.sort();
    out
}

#[cfg(test)]
mod tests;
