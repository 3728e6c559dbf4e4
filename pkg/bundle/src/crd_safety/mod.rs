//! Whether a CRD may replace another without breaking the objects that exist.
//!
//! Every version present on both sides is compared field by field, and the versions served side by side
//! with each other, because objects are read and written through all of them. What loosens a schema in a
//! way that is understood passes; any difference that no rule knows is refused.

mod compare;
mod flatten;
mod literal;
mod version_order;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// One reason why an upgrade of a CRD is unsafe.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The version, or pair of versions, and the field: `v1: ^.spec.size`; empty when the whole CRD is meant.
    pub path: String,
    /// Name of the rule: `type`, `enum`, `storedVersionRemoval`, ...
    pub rule: String,
    /// What changed.
    pub message: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{}: {}", self.rule, self.message)
    }
}

/// Compares `old`, as it is on the cluster, with `new`. No finding means that the upgrade is safe. The
/// findings are sorted. Objects that are no `apiextensions.k8s.io/v1` CRDs are not looked at.
pub fn check(old: &Value, new: &Value) -> Vec<Finding> {
    if !is_v1(old) || !is_v1(new) {
        return Vec::new();
    }
    let mut out = Vec::new();
    scope(old, new, &mut out);
    stored_versions(old, new, &mut out);
    let (old_versions, new_versions) = (versions(old), versions(new));
    for (name, old_version) in &old_versions {
        if let Some(new_version) = new_versions.get(name) {
            same_version(name, old_version, new_version, &mut out);
        }
    }
    if new.pointer("/spec/conversion/strategy").and_then(Value::as_str) != Some("Webhook") {
        served_pairs(&old_versions, &new_versions, &mut out);
    }
    out.sort();
    out.dedup();
    out
}

fn is_v1(crd: &Value) -> bool {
    crd.get("apiVersion").and_then(Value::as_str) == Some("apiextensions.k8s.io/v1")
}

/// The versions of a CRD by name.
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
        out.push(crd_wide(
            "scope",
            format!("scope changed : \"{old}\" -> \"{new}\""),
        ));
    }
}

/// Objects may still be stored in a version that is gone.
fn stored_versions(old: &Value, new: &Value, out: &mut Vec<Finding>) {
    let present = versions(new);
    let removed: Vec<&str> = old
        .pointer("/status/storedVersions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|version| !present.contains_key(version))
        .collect();
    if !removed.is_empty() {
        let message = format!("stored versions removed : [{}]", removed.join(" "));
        out.push(crd_wide("storedVersionRemoval", message));
    }
}

fn same_version(name: &str, old: &Value, new: &Value, out: &mut Vec<Finding>) {
    let (old, new) = (flatten::flatten(schema(old)), flatten::flatten(schema(new)));
    for path in old.keys().filter(|path| !new.contains_key(*path)) {
        out.push(crd_wide(
            "existingFieldRemoval",
            format!("removed field : {name}.{path}"),
        ));
    }
    out.extend(differences(name, &old, &new));
}

/// What the rules say to each field of `old`; a field that is gone is compared with an empty schema.
fn differences(head: &str, old: &flatten::Fields<'_>, new: &flatten::Fields<'_>) -> BTreeSet<Finding> {
    let empty = Value::Null;
    let mut out = BTreeSet::new();
    for (path, old_field) in old {
        let new_field = new.get(path).copied().unwrap_or(&empty);
        for (rule, message) in compare::field(old_field, new_field) {
            out.insert(Finding {
                path: format!("{head}: {path}"),
                rule: rule.to_owned(),
                message,
            });
        }
    }
    out
}

/// Versions served together are views of the same objects. What the old CRD did wrong already is not
/// the fault of the upgrade.
fn served_pairs(old: &BTreeMap<&str, &Value>, new: &BTreeMap<&str, &Value>, out: &mut Vec<Finding>) {
    let known = pairs(old);
    for (head, findings) in pairs(new) {
        let before = known.get(&head);
        out.extend(
            findings
                .into_iter()
                .filter(|finding| !before.is_some_and(|before| before.contains(finding))),
        );
    }
}

fn pairs(versions: &BTreeMap<&str, &Value>) -> BTreeMap<String, BTreeSet<Finding>> {
    let is_served = |version: &Value| version.get("served").and_then(Value::as_bool).unwrap_or(false);
    let mut served: Vec<&str> = versions
        .iter()
        .filter(|(_, version)| is_served(version))
        .map(|(name, _)| *name)
        .collect();
    served.sort_by(|left, right| version_order::compare(left, right));
    let fields: BTreeMap<&str, flatten::Fields<'_>> = served
        .iter()
        .filter_map(|name| Some((*name, flatten::flatten(schema(versions.get(name)?)))))
        .collect();
    let mut out = BTreeMap::new();
    for (at, from) in served.iter().enumerate() {
        for to in served.iter().skip(at + 1) {
            if let (Some(left), Some(right)) = (fields.get(from), fields.get(to)) {
                let head = format!("{from} -> {to}");
                let findings = differences(&head, left, right);
                out.insert(head, findings);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
