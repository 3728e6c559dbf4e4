//! Verdicts on CRDs on both sides of a change.

use std::collections::BTreeSet;

use olm_bundle::crd_safety::{Rules, ServedVerdict, check, unserved_versions};
use olm_text::object::ObjectId;
use serde_json::Value;

use crate::model::CrdVerdict;

/// Returns the names of the CRDs that only `before` has.
#[must_use]
pub fn dropped<'a>(before: &'a [Value], after: &[Value]) -> BTreeSet<&'a str> {
    let kept = names(after);
    names(before)
        .into_iter()
        .filter(|name| !kept.contains(name))
        .collect()
}

fn names(objects: &[Value]) -> BTreeSet<&str> {
    let crds = objects.iter().map(ObjectId::of).filter(ObjectId::is_crd);
    crds.map(|id| id.name).collect()
}

/// Compares the CRDs that both lists have, without a cluster: versions that are no longer served are warnings.
#[must_use]
pub fn compare(before: &[Value], after: &[Value], rules: Rules) -> Vec<CrdVerdict> {
    let is_crd = |object: &&Value| ObjectId::of(object).is_crd();
    let name = |object: &Value| ObjectId::of(object).name.to_owned();
    let mut verdicts: Vec<CrdVerdict> = after
        .iter()
        .filter(is_crd)
        .filter_map(|new| {
            let old = before.iter().filter(is_crd).find(|old| name(old) == name(new))?;
            let served = unserved_versions(old, new)
                .filter(|_| rules == Rules::Ours)
                .map_or_else(ServedVerdict::default, |unserved| {
                    unserved.unchecked("this needs a cluster")
                });
            let mut findings = check(old, new, rules);
            findings.extend(served.findings);
            Some(CrdVerdict {
                crd: name(new),
                findings,
                warnings: served.warnings,
                stored_objects: None,
            })
        })
        .collect();
    verdicts.sort_by(|a, b| a.crd.cmp(&b.crd));
    verdicts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_crds_that_are_gone_are_dropped() {
        let object = |kind: &str, name: &str| {
            let group = if kind == "ConfigMap" {
                "v1"
            } else {
                "apiextensions.k8s.io/v1"
            };
            json!({"apiVersion": group, "kind": kind, "metadata": {"name": name}})
        };
        let crd = |name| object("CustomResourceDefinition", name);
        let before = [
            crd("kites"),
            crd("lamps"),
            object("ConfigMap", "gone"),
            crd("masts"),
        ];
        let after = [crd("lamps"), crd("new")];
        assert_eq!(dropped(&before, &after), BTreeSet::from(["kites", "masts"]));
        assert_eq!(dropped(&after, &after), BTreeSet::new());
        assert_eq!(dropped(&[], &after), BTreeSet::new());
    }
}
