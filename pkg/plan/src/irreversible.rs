//! Consequences that no later change undoes.

use std::collections::BTreeSet;

use olm_text::object::text;
use serde_json::Value;

use crate::model::{CrdVerdict, Irreversible, ObjectRef};
use crate::objects::Desired;

/// Rule of a finding: the new CRD lacks a version that objects may be stored in.
const STORED_VERSION: &str = "storedVersionRemoval";

/// Returns the consequences, in the order of the objects.
pub(crate) fn all(before: &Desired, after: &Desired, crds: &[CrdVerdict]) -> Vec<Irreversible> {
    let mut out = Vec::new();
    for (key, old) in before {
        let reasons = match after.get(key) {
            None => deleted(old).into_iter().collect(),
            Some(new) => {
                let verdict = crds
                    .iter()
                    .find(|verdict| verdict.crd == text(new, "/metadata/name"));
                changed(old, new, verdict)
            }
        };
        out.extend(reasons.into_iter().map(|reason| Irreversible {
            object: ObjectRef::of(old),
            reason,
        }));
    }
    out
}

fn deleted(object: &Value) -> Option<String> {
    let reason = match text(object, "/kind") {
        "CustomResourceDefinition" => {
            "the CRD is deleted, and all its objects with it, unless spec.deletion.customResources keeps CRDs that hold some"
        }
        "Namespace" => "the namespace is deleted, and everything in it",
        "PersistentVolumeClaim" => {
            "the claim is deleted; its volume is deleted too, unless its reclaim policy is Retain"
        }
        _ => return None,
    };
    Some(reason.to_owned())
}

fn changed(old: &Value, new: &Value, verdict: Option<&CrdVerdict>) -> Vec<String> {
    if text(old, "/kind") != "CustomResourceDefinition" {
        return Vec::new();
    }
    let mut reasons = Vec::new();
    let (before, after) = (versions(old), versions(new));
    let dropped: Vec<&str> = before.difference(&after).copied().collect();
    if !dropped.is_empty() {
        reasons.push(format!(
            "version {} is removed: objects that are stored in it can no longer be read",
            dropped.join(", ")
        ));
    }
    let stored = verdict
        .into_iter()
        .flat_map(|verdict| &verdict.findings)
        .filter(|finding| finding.rule == STORED_VERSION);
    reasons.extend(stored.map(|finding| finding.message.clone()));
    if let (Some(from), Some(to)) = (storage(old), storage(new))
        && from != to
        && after.contains(from)
    {
        reasons.push(format!(
            "objects are stored in version {to} instead of {from}: a bundle without {to} cannot be installed again"
        ));
    }
    reasons
}

fn all_versions(crd: &Value) -> impl Iterator<Item = &Value> {
    let list = crd.pointer("/spec/versions").and_then(Value::as_array);
    list.into_iter().flatten()
}

fn versions(crd: &Value) -> BTreeSet<&str> {
    all_versions(crd).map(|version| text(version, "/name")).collect()
}

/// Returns the version in which new objects are stored.
fn storage(crd: &Value) -> Option<&str> {
    let is_storage = |version: &&Value| version.get("storage").and_then(Value::as_bool) == Some(true);
    all_versions(crd)
        .find(is_storage)
        .map(|version| text(version, "/name"))
}

#[cfg(test)]
mod tests {
    use olm_bundle::crd_safety::Finding;
    use serde_json::json;

    use super::*;
    use crate::objects::desired;

    #[test]
    fn only_findings_about_stored_versions_of_the_crd_itself_count() {
        let crd = |name: &str| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
                "spec": {"versions": [{"name": "v1", "storage": true}]}})
        };
        let side = desired(vec![crd("kites.x"), crd("lamps.x")]);
        let finding = |rule: &str| Finding {
            path: String::new(),
            rule: rule.to_owned(),
            message: format!("because of {rule}"),
        };
        let verdict = CrdVerdict {
            crd: "lamps.x".to_owned(),
            findings: vec![finding("enum"), finding(STORED_VERSION), finding("type")],
            ..CrdVerdict::default()
        };
        let found = all(&side, &side, &[verdict]);
        let found: Vec<String> = found
            .iter()
            .map(|one| format!("{}: {}", one.object, one.reason))
            .collect();
        assert_eq!(
            found,
            ["CustomResourceDefinition lamps.x: because of storedVersionRemoval"]
        );
    }
}
