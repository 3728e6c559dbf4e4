//! Versions of one CRD that hold the same objects: differences between them change or lose fields.
//!
//! A conversion webhook bridges such differences. With the strategy `None`, the API server only changes `apiVersion` and
//! prunes the fields that the other version lacks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::compare::UNHANDLED;
use super::effect::Effect;
use super::{Finding, differences, effect, flatten, is, schema, stored, version_order, versions};

/// End of the first part of a path, after the pair of versions, if only the removed webhook bridged the difference.
const WITHOUT_WEBHOOK: &str = " without the conversion webhook";
/// End of the first part of a path, after the pair of versions, if the field was stored so far.
const NEW_STORAGE: &str = " with the new storage version";

/// The versions of a CRD, by name.
type Versions<'a> = BTreeMap<&'a str, &'a Value>;

/// The fields of each version, by name.
type Fields<'a> = BTreeMap<&'a str, flatten::Fields<'a>>;

/// Two versions; objects are converted from the first one to the second one.
type Pair<'a> = (&'a str, &'a str);

/// Compares the versions that `new` serves together, unless a webhook converts the objects. Omits findings that `old` has
/// too: objects were converted in the same way before.
///
/// With `ours`, two kinds of differences are not omitted, although `old` has them: all if `old` has a conversion webhook, which
/// bridged them, and the fields that a new storage version prunes from the stored objects. Upstream omits them.
pub(super) fn findings(old: &Value, new: &Value, ours: bool) -> BTreeSet<Finding> {
    if has_webhook(new) {
        return BTreeSet::new();
    }
    // Objects are also converted back, so a change that only allows more does not pass.
    let passing = ours.then_some(Effect::Same);
    let (before, after) = (versions(old), versions(new));
    let mut pairs = served_pairs(&after);
    if ours && has_webhook(old) {
        pairs.extend(storage_pairs(old, &before, &after));
        return compare(&after, &pairs, WITHOUT_WEBHOOK, passing);
    }
    let known = compare(&before, &served_pairs(&before), "", passing);
    let mut out = compare(&after, &pairs, "", passing);
    out.retain(|finding| !known.contains(finding));
    if ours {
        out.extend(storage_losses(&before, &after, &out));
    }
    out
}

/// Returns true for the path of a finding about a removed webhook or a new storage version.
pub(super) fn is_about_conversion(path: &str) -> bool {
    is_noted(path, WITHOUT_WEBHOOK) || is_about_storage(path)
}

/// Returns true for the path of a finding about a new storage version.
pub(super) fn is_about_storage(path: &str) -> bool {
    is_noted(path, NEW_STORAGE)
}

fn is_noted(path: &str, note: &str) -> bool {
    path.split_once(": ")
        .is_some_and(|(head, _)| head.ends_with(note))
}

/// Returns the fields that the former storage version keeps and the new one prunes: the next write of an object loses them, also a
/// migration that changes nothing else. Omits those that `found` names for the same pair of versions.
///
/// Other differences do not count: the API server validates requests in the version of the client, and does not validate what it
/// reads.
fn storage_losses(
    before: &Versions<'_>,
    after: &Versions<'_>,
    found: &BTreeSet<Finding>,
) -> BTreeSet<Finding> {
    let (Some(from), Some(to)) = (storage(before), storage(after)) else {
        return BTreeSet::new();
    };
    let (Some(was), Some(now)) = (after.get(from).filter(|_| from != to), after.get(to)) else {
        return BTreeSet::new();
    };
    let (was, now) = (flatten::flatten(schema(was)), flatten::flatten(schema(now)));
    let pruned: BTreeMap<String, bool> = was
        .iter()
        .filter(|(key, node)| is_pruned(key, node, &now))
        .map(|(key, _)| (flatten::path(key), now.contains_key(key)))
        .collect();
    let pair = format!("{from} -> {to}");
    let note = format!("{pair}{NEW_STORAGE}");
    let mut out = differences(&note, &was, &now, Some(Effect::Looser));
    out.retain(|finding| {
        let path = |finding: &Finding, head: &str| {
            let below = finding.path.strip_prefix(head)?.strip_prefix(": ")?;
            pruned.get_key_value(below)
        };
        path(finding, &note).is_some_and(|(field, stays)| {
            let is_known = |known: &Finding| path(known, &pair).is_some_and(|(known, _)| known == field);
            // Of a field that stays, only the loss of unnamed fields counts; it has no rule of its own.
            (!stays || finding.rule == UNHANDLED) && !found.iter().any(is_known)
        })
    });
    out
}

/// Returns true if the API server prunes the field, or unnamed fields in it, from objects of the version with the fields `now`. False
/// for a field whose parent is pruned as a whole.
fn is_pruned(key: &str, was: &flatten::Node<'_>, now: &flatten::Fields<'_>) -> bool {
    let keeps = |node: &flatten::Node<'_>| {
        let all = ["x-kubernetes-preserve-unknown-fields", "additionalProperties"];
        all.iter().any(|key| effect::truth(node.schema.get(key)))
    };
    // Schemas below `allOf` and the like only restrict, and every object has these fields.
    if was.in_logic || ["^.apiVersion", "^.kind", "^.metadata"].contains(&key) {
        return false;
    }
    match now.get(key) {
        Some(now) => keeps(was) && !keeps(now),
        None => was
            .above
            .as_ref()
            .and_then(|above| now.get(above))
            .is_some_and(|above| !keeps(above)),
    }
}

fn has_webhook(crd: &Value) -> bool {
    crd.pointer("/spec/conversion/strategy").and_then(Value::as_str) == Some("Webhook")
}

/// Returns the pairs of served versions, each with the less mature version first.
fn served_pairs<'a>(versions: &Versions<'a>) -> BTreeSet<Pair<'a>> {
    let served = versions.iter().filter(|(_, version)| is(version, "served"));
    let mut served: Vec<&str> = served.map(|(name, _)| *name).collect();
    served.sort_by(|left, right| version_order::compare(left, right));
    let later = |at: usize| served.iter().skip(at + 1);
    let pairs = served.iter().enumerate();
    pairs
        .flat_map(|(at, from)| later(at).map(|to| (*from, *to)))
        .collect()
}

/// Returns each version in which objects of `old` may be stored with the storage version of the new CRD: the next write
/// stores an object in that version.
fn storage_pairs<'a>(old: &'a Value, before: &Versions<'a>, after: &Versions<'a>) -> Vec<Pair<'a>> {
    let (Some(from), Some(to)) = (storage(before), storage(after)) else {
        return Vec::new();
    };
    // A CRD that was never on a cluster has no status.
    let stored = stored::versions(old).chain([from]);
    stored.filter(|from| *from != to).map(|from| (from, to)).collect()
}

fn storage<'a>(versions: &Versions<'a>) -> Option<&'a str> {
    let mut all = versions.iter();
    all.find(|(_, version)| is(version, "storage"))
        .map(|(name, _)| *name)
}

/// Returns the differences of the pairs of which both versions exist; `note` ends the name of each pair.
fn compare(
    versions: &Versions<'_>,
    pairs: &BTreeSet<Pair<'_>>,
    note: &str,
    passing: Option<Effect>,
) -> BTreeSet<Finding> {
    let compared = |name: &str| pairs.iter().any(|(from, to)| *from == name || *to == name);
    let named = versions.iter().filter(|(name, _)| compared(name));
    let fields: Fields<'_> = named
        .map(|(name, version)| (*name, flatten::flatten(schema(version))))
        .collect();
    let mut out = BTreeSet::new();
    for (from, to) in pairs {
        if let (Some(left), Some(right)) = (fields.get(from), fields.get(to)) {
            out.extend(differences(
                &format!("{from} -> {to}{note}"),
                left,
                right,
                passing,
            ));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::crd_safety::{Rules, Waiver, check, waive};

    /// Returns a CRD with served versions (name, field of the spec), the first one stored.
    fn crd(strategy: &str, versions: &[(&str, &[&str])], stored: &[&str]) -> Value {
        let version = |(at, (name, fields)): (usize, &(&str, &[&str]))| {
            let fields: serde_json::Map<String, Value> = fields
                .iter()
                .map(|field| ((*field).to_owned(), json!({"type": "string"})))
                .collect();
            let spec = json!({"type": "object", "properties": fields});
            json!({"name": name, "served": true, "storage": at == 0,
                   "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}})
        };
        let versions: Vec<Value> = versions.iter().enumerate().map(version).collect();
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
               "spec": {"scope": "Namespaced", "conversion": {"strategy": strategy}, "versions": versions},
               "status": {"storedVersions": stored}})
    }

    fn texts(old: &Value, new: &Value, rules: Rules) -> Vec<String> {
        check(old, new, rules).iter().map(ToString::to_string).collect()
    }

    /// Without the webhook, a read of v1alpha1 objects in v1 prunes the field that only v1alpha1 has.
    #[test]
    fn a_conversion_webhook_stays_while_versions_differ() {
        let versions: &[(&str, &[&str])] = &[("v1", &["replicas"]), ("v1alpha1", &["size"])];
        let with = crd("Webhook", versions, &["v1alpha1", "v1"]);
        let without = crd("None", versions, &["v1alpha1", "v1"]);
        assert_eq!(
            texts(&with, &without, Rules::Ours),
            [
                "v1alpha1 -> v1 without the conversion webhook: ^.spec.size: type: type changed : \"string\" -> \"\""
            ]
        );
        // The stored objects do not decide: the webhook converts them until the CRD is replaced.
        assert!(!check(&with, &without, Rules::Ours)[0].is_decided_by_objects());
        assert_eq!(texts(&with, &without, Rules::Upstream), [""; 0]);
        for (old, new) in [(&with, &with), (&without, &with), (&without, &without)] {
            assert_eq!(texts(old, new, Rules::Ours), [""; 0]);
        }
    }

    #[test]
    fn a_conversion_webhook_between_equal_versions_may_go() {
        let versions: &[(&str, &[&str])] = &[("v1", &["size"]), ("v1alpha1", &["size"])];
        let with = crd("Webhook", versions, &["v1alpha1", "v1"]);
        assert_eq!(texts(&with, &crd("None", versions, &[]), Rules::Ours), [""; 0]);
        // A single version is not converted.
        let versions: &[(&str, &[&str])] = &[("v1", &["size"])];
        let with = crd("Webhook", versions, &["v1"]);
        assert_eq!(texts(&with, &crd("None", versions, &[]), Rules::Ours), [""; 0]);
    }

    /// Objects of v2 are stored as v1 with the next write.
    #[test]
    fn stored_objects_keep_their_fields_in_the_storage_version() {
        let with = crd("Webhook", &[("v2", &["a", "b"]), ("v1", &["a"])], &["v2"]);
        let without = crd("None", &[("v1", &["a"]), ("v2", &["a", "b"])], &[]);
        let lost =
            ["v2 -> v1 without the conversion webhook: ^.spec.b: type: type changed : \"string\" -> \"\""];
        assert_eq!(texts(&with, &without, Rules::Ours), lost);
        let mut never_installed = with;
        never_installed["status"] = Value::Null;
        assert_eq!(texts(&never_installed, &without, Rules::Ours), lost);
    }

    #[test]
    fn a_version_that_is_stored_but_not_served_counts() {
        let versions: &[(&str, &[&str])] = &[("v1", &["replicas"]), ("v1alpha1", &["size"])];
        let unserved = |strategy: &str, stored: &[&str]| {
            let mut crd = crd(strategy, versions, stored);
            crd["spec"]["versions"][1]["served"] = false.into();
            crd
        };
        let new = unserved("None", &[]);
        let found = texts(&unserved("Webhook", &["v1alpha1", "v1"]), &new, Rules::Ours);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(texts(&unserved("Webhook", &["v1"]), &new, Rules::Ours), [""; 0]);
    }

    /// The field `b` was kept in the storage so far, although clients of v1 never saw it.
    #[test]
    fn a_new_storage_version_keeps_the_stored_fields() {
        let (all, some): (&[&str], &[&str]) = (&["a", "b"], &["a"]);
        let old = crd("None", &[("v1alpha1", all), ("v1", some)], &["v1alpha1"]);
        let new = crd("None", &[("v1", some), ("v1alpha1", all)], &[]);
        assert_eq!(
            texts(&old, &new, Rules::Ours),
            [
                "v1alpha1 -> v1 with the new storage version: ^.spec.b: type: type changed : \"string\" -> \"\""
            ]
        );
        let found = check(&old, &new, Rules::Ours);
        assert!(!found[0].is_decided_by_objects());
        let waiver = Waiver::of(&found[0]);
        assert_eq!((waiver.rule.as_str(), waiver.path.as_str()), ("type", "^.spec.b"));
        assert_eq!(waive(found, &[waiver]), (vec![], vec![true]));
        assert_eq!(texts(&old, &new, Rules::Upstream), [""; 0]);
        // Nothing is lost with a wider storage version, the same one, or a webhook.
        assert_eq!(texts(&new, &old, Rules::Ours), [""; 0]);
        assert_eq!(texts(&old, &old, Rules::Ours), [""; 0]);
        let converted = crd("Webhook", &[("v1", some), ("v1alpha1", all)], &[]);
        assert_eq!(texts(&old, &converted, Rules::Ours), [""; 0]);
    }

    #[test]
    fn a_new_storage_version_may_differ_in_all_but_pruned_fields() {
        let spec = |storage: &str, alpha: &Value, ga: &Value| {
            let version = |(name, spec): (&str, &Value)| {
                json!({"name": name, "served": true, "storage": name == storage, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": spec}}}})
            };
            json!({"apiVersion": "apiextensions.k8s.io/v1", "spec": {"scope": "Namespaced",
                "versions": [version(("v1alpha1", alpha)), version(("v1", ga))]}})
        };
        let lost = |alpha: Value, ga: Value| {
            let (old, new) = (spec("v1alpha1", &alpha, &ga), spec("v1", &alpha, &ga));
            texts(&old, &new, Rules::Ours)
        };
        let size = json!({"type": "integer", "default": 1});
        let full = json!({"type": "object", "properties": {"size": size}});
        let stricter = json!({"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "maximum": 5}, "more": {"type": "string"}}});
        assert_eq!(lost(full.clone(), stricter), [""; 0]);
        let keeps = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(lost(full.clone(), keeps.clone()), [""; 0]);
        let head = "v1alpha1 -> v1 with the new storage version: ^.spec";
        assert_eq!(
            lost(
                keeps,
                json!({"type": "object", "required": ["size"], "properties": {"size": size}})
            ),
            [format!(
                "{head}: unhandled: unhandled changes found (XPreserveUnknownFields &true -> nil)"
            )]
        );
        // One field for all below.
        let nested = json!({"type": "object", "properties": {"a": full}});
        assert_eq!(
            lost(nested, json!({"type": "object"})),
            [format!("{head}.a: type: type changed : \"object\" -> \"\"")]
        );
    }

    /// A difference of the versions that is new, too, has one finding.
    #[test]
    fn a_new_version_that_is_stored_is_compared_once() {
        let old = crd("None", &[("v1alpha1", &["a", "b"])], &["v1alpha1"]);
        let new = crd("None", &[("v1", &["a"]), ("v1alpha1", &["a", "b"])], &[]);
        assert_eq!(
            texts(&old, &new, Rules::Ours),
            ["v1alpha1 -> v1: ^.spec.b: type: type changed : \"string\" -> \"\""]
        );
    }
}
