//! CRD upgrade safety: decides if a CRD may replace another without breaking existing objects.
//!
//! Every version present on both sides is compared field by field, and the versions served side by side are compared
//! with each other, because objects are read and written through all of them. A change that only loosens a schema
//! passes; a difference that no rule knows is refused.
//!
//! Findings of [`check`] are upstream's, word for word; [`Rules::Ours`] omits those that break nothing, and adds those of a
//! removed conversion webhook and of a new storage version. One finding of our own needs more than schemas: versions that are in use and no longer
//! served ([`unserved_versions`]).

mod compare;
mod effect;
mod flatten;
mod keywords;
mod literal;
mod logic;
mod pairs;
mod served;
mod stored;
mod version_order;
mod waiver;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use effect::Effect;

pub use served::{SERVED_REMOVAL, ServedVerdict, UnservedVersions, VersionUses, Writer, unserved_versions};
pub use stored::migration;
pub use waiver::{Removals, Waiver, waive};

/// The rule of a changed scope.
const SCOPE: &str = "scope";
/// The rule of a version that goes although objects may be stored in it.
pub const STORED_REMOVAL: &str = "storedVersionRemoval";

/// Reason why an upgrade of a CRD is unsafe.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// The version, or pair of versions, and the field: `v1: ^.spec.size`; empty when the whole CRD is meant.
    pub path: String,
    /// Name of the rule: `type`, `enum`, `storedVersionRemoval`, ...
    pub rule: String,
    /// Description of the change.
    pub message: String,
}

impl Finding {
    /// Returns true if the change can only harm objects, so that the stored objects decide if it does. The scope and the versions
    /// of a CRD concern its clients as well. Objects that a webhook still converts do not show the loss after its removal, and those
    /// in the former storage version not that of a new one.
    pub fn is_decided_by_objects(&self) -> bool {
        ![SCOPE, STORED_REMOVAL, SERVED_REMOVAL].contains(&self.rule.as_str())
            && !pairs::is_about_conversion(&self.path)
    }

    /// Returns true if the new storage version prunes the field, which is stored so far.
    pub fn is_lost_from_storage(&self) -> bool {
        pairs::is_about_storage(&self.path)
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{}: {}", self.rule, self.message)
    }
}

/// Rule sets that decide which changes are unsafe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rules {
    /// Changes that break neither objects nor clients pass; see docs/deviations.md.
    #[default]
    Ours,
    /// Everything that upstream refuses is refused.
    Upstream,
}

/// Compares `old`, as it is on the cluster, with `new`. Returns sorted findings; the upgrade is safe if there are none.
/// Ignores objects that are not `apiextensions.k8s.io/v1` CRDs.
pub fn check(old: &Value, new: &Value, rules: Rules) -> Vec<Finding> {
    if !is_v1(old) || !is_v1(new) {
        return Vec::new();
    }
    let ours = rules == Rules::Ours;
    let mut out = Vec::new();
    scope(old, new, &mut out);
    out.extend(stored::finding(old, new));
    let (old_versions, new_versions) = (versions(old), versions(new));
    for (name, old_version) in &old_versions {
        if ours && is_unused(old, name, old_version) {
            continue;
        }
        if let Some(new_version) = new_versions.get(name) {
            same_version(name, old_version, new_version, ours, &mut out);
        }
    }
    out.extend(pairs::findings(old, new, ours));
    out.sort();
    out.dedup();
    out
}

/// Returns true for a version in which no object is stored and that no client can reach.
fn is_unused(crd: &Value, name: &str, version: &Value) -> bool {
    let stored: Vec<&str> = stored::versions(crd).collect();
    !is(version, "served") && !is(version, "storage") && !stored.is_empty() && !stored.contains(&name)
}

/// Returns a flag of a version: `served` or `storage`.
fn is(version: &Value, key: &str) -> bool {
    version.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn is_v1(crd: &Value) -> bool {
    crd.get("apiVersion").and_then(Value::as_str) == Some("apiextensions.k8s.io/v1")
}

/// Returns the versions of a CRD by name.
fn versions(crd: &Value) -> BTreeMap<&str, &Value> {
    crd.pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|version| Some((version.get("name")?.as_str()?, version)))
        .collect()
}

fn schema(version: &Value) -> &Value {
    version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null)
}

fn crd_wide(rule: &str, message: String) -> Finding {
    Finding {
        path: String::new(),
        rule: rule.to_owned(),
        message,
    }
}

fn scope(old: &Value, new: &Value, out: &mut Vec<Finding>) {
    let scope = |crd| {
        Value::pointer(crd, "/spec/scope")
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (old, new) = (scope(old), scope(new));
    if old != new {
        out.push(crd_wide(SCOPE, format!("scope changed : \"{old}\" -> \"{new}\"")));
    }
}

fn same_version(name: &str, old: &Value, new: &Value, ours: bool, out: &mut Vec<Finding>) {
    let (old, new) = (flatten::flatten(schema(old)), flatten::flatten(schema(new)));
    for (key, node) in old.iter().filter(|(key, _)| !new.contains_key(*key)) {
        if ours && (is_compared_with_ancestor(node, &old, &new) || is_kept(node, &old, &new)) {
            continue;
        }
        out.push(crd_wide(
            "existingFieldRemoval",
            format!("removed field : {name}.{}", flatten::path(key)),
        ));
    }
    out.extend(differences(name, &old, &new, ours.then_some(Effect::Looser)));
}

/// Returns true if the field that this one only restricts still exists: the comparison of that field covers this one.
fn is_compared_with_ancestor(
    node: &flatten::Node<'_>,
    old: &flatten::Fields<'_>,
    new: &flatten::Fields<'_>,
) -> bool {
    let mut node = node;
    while let Some(above) = node.above.as_deref().filter(|_| node.in_logic) {
        match old.get(above) {
            Some(next) if next.in_logic => node = next,
            Some(_) => return new.contains_key(above),
            None => return false,
        }
    }
    false
}

/// Returns true if a removed field stays in the objects because its parent keeps unknown fields.
fn is_kept(node: &flatten::Node<'_>, old: &flatten::Fields<'_>, new: &flatten::Fields<'_>) -> bool {
    let mut top = node;
    while let Some(above) = &top.above {
        if let Some(now) = new.get(above) {
            let keeps = effect::truth(now.schema.get("x-kubernetes-preserve-unknown-fields"))
                && now.schema.get("additionalProperties").is_none();
            return keeps && keywords::is_only_checks(top.schema);
        }
        let Some(next) = old.get(above) else { return false };
        top = next;
    }
    false
}

/// Applies the rules to each field of `old`; a removed field is compared with an empty schema. With `passing`, changes
/// up to that effect are omitted, and a schema that only restricts is compared with the field that contains it.
fn differences(
    head: &str,
    old: &flatten::Fields<'_>,
    new: &flatten::Fields<'_>,
    passing: Option<Effect>,
) -> BTreeSet<Finding> {
    let mut out = BTreeSet::new();
    for (key, before) in old {
        if passing.is_some() && is_compared_with_ancestor(before, old, new) {
            continue;
        }
        let gone = flatten::Node {
            schema: &Value::Null,
            ..before.clone()
        };
        let (after, passing) = match new.get(key) {
            Some(after) => (after, passing),
            None if passing == Some(Effect::Looser) && is_kept(before, old, new) => continue,
            None => (&gone, None),
        };
        for (rule, message) in compare::field(before, after, passing) {
            out.insert(Finding {
                path: format!("{head}: {}", flatten::path(key)),
                rule: rule.to_owned(),
                message,
            });
        }
    }
    out
}

#[cfg(test)]
mod tests;
