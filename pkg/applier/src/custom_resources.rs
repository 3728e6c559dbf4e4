//! CRDs that hold custom resources: their number, and what the removal of a revision does with the CRD. Pure.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use olm_api::condition::{external::Crd, untyped};
use olm_api::{CustomResourcePolicy, keys};
use olm_text::cut;
use serde_json::{Value, json};

use crate::ownership::Identity;

/// Maximum length of the reason why custom resources cannot be counted, in bytes.
const MAX_REASON: usize = 256;

/// Number of custom resources of a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// Exact number.
    Exact(u64),
    /// More than one; the API server does not say how many.
    Several,
    /// The number cannot be read, for this reason. The CRD counts as holding custom resources.
    Unknown(String),
}

impl Count {
    /// Returns the number from a list of at most one object: `listed` objects, the `continue` token, and the number of
    /// objects that the list leaves out.
    #[must_use]
    pub fn of_page(listed: usize, next: Option<&str>, remaining: Option<i64>) -> Self {
        let more = next.is_some_and(|token| !token.is_empty());
        let remaining = remaining.and_then(|left| u64::try_from(left).ok());
        match remaining {
            Some(left) => Self::Exact(u64::try_from(listed).unwrap_or(u64::MAX).saturating_add(left)),
            None if more => Self::Several,
            None => Self::Exact(u64::try_from(listed).unwrap_or(u64::MAX)),
        }
    }

    /// Returns an unknown number with a bounded reason.
    #[must_use]
    pub fn unknown(reason: &str) -> Self {
        Self::Unknown(cut(reason, MAX_REASON).into_owned())
    }

    /// Returns true if there may be custom resources.
    #[must_use]
    pub fn may_hold(&self) -> bool {
        *self != Self::Exact(0)
    }
}

/// Formats the number after the name of a CRD.
impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(1) => f.write_str("holds 1 custom resource"),
            Self::Exact(number) => write!(f, "holds {number} custom resources"),
            Self::Several => f.write_str("holds custom resources"),
            Self::Unknown(reason) => write!(
                f,
                "counts as holding custom resources, because they cannot be counted ({reason})"
            ),
        }
    }
}

/// CRD with custom resources at the removal of its revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCrd {
    /// Name of the CRD.
    pub name: String,
    /// Number of its custom resources.
    pub count: Count,
    /// Version in which alone the custom resources stay readable, because reads in any other need a conversion webhook.
    pub readable_in: Option<String>,
}

/// Formats the CRD with its number, and with the limit on its use.
impl fmt::Display for HeldCrd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.count)?;
        match &self.readable_in {
            Some(version) => write!(
                f,
                ", readable in version {version} alone until its conversion webhook is back"
            ),
            None => Ok(()),
        }
    }
}

/// Decision about a CRD that a revision would delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The CRD is deleted.
    Delete,
    /// The CRD stays with its custom resources.
    Keep,
    /// The CRD, and with it the removal, waits.
    Wait,
}

/// Decides about a CRD with `count` custom resources.
#[must_use]
pub fn fate(policy: CustomResourcePolicy, count: &Count) -> Fate {
    match policy {
        _ if !count.may_hold() => Fate::Delete,
        CustomResourcePolicy::Delete => Fate::Delete,
        CustomResourcePolicy::Keep => Fate::Keep,
        CustomResourcePolicy::Block => Fate::Wait,
    }
}

/// How the custom resources of a CRD are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The CRD was never established, so that nobody could create custom resources.
    NeverEstablished,
    /// No version is served.
    Unserved,
    /// The resource to list.
    In {
        /// API group.
        group: String,
        /// Version: the stored one if it is served, since reads in it need no conversion.
        version: String,
        /// Plural name.
        plural: String,
    },
}

fn versions(crd: &Value) -> impl Iterator<Item = &Value> {
    crd.pointer("/spec/versions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn flag(version: &Value, key: &str) -> bool {
    version.get(key).and_then(Value::as_bool) == Some(true)
}

/// Returns how the custom resources of `crd` are listed.
#[must_use]
pub fn listing(crd: &DynamicObject) -> Listing {
    if !untyped::is_true(&crd.data, Crd::Established) {
        return Listing::NeverEstablished;
    }
    let mut served: Vec<&Value> = versions(&crd.data)
        .filter(|version| flag(version, "served"))
        .collect();
    served.sort_by_key(|version| !flag(version, "storage"));
    match served.first() {
        None => Listing::Unserved,
        Some(version) => Listing::In {
            group: text(&crd.data, "/spec/group").to_owned(),
            version: text(version, "/name").to_owned(),
            plural: text(&crd.data, "/spec/names/plural").to_owned(),
        },
    }
}

/// Returns the version in which alone custom resources can be read without the conversion webhook of `crd`; `None` if
/// nothing needs the webhook: there is none, or one version only.
#[must_use]
pub fn readable_in(crd: &Value) -> Option<String> {
    if text(crd, "/spec/conversion/strategy") != "Webhook" || versions(crd).count() < 2 {
        return None;
    }
    let stored = versions(crd).find(|version| flag(version, "storage"))?;
    Some(text(stored, "/name").to_owned())
}

/// Returns true if the object, a CRD or a Namespace, stayed when its extension was removed.
#[must_use]
pub fn is_kept(meta: &ObjectMeta) -> bool {
    meta.labels
        .as_ref()
        .is_some_and(|labels| labels.contains_key(keys::KEPT_FROM_LABEL))
}

/// Returns the change of metadata that makes a CRD or a Namespace stay: no owner among the revisions of this extension, no mark of a
/// revision, and the label that names the extension. The extension, which upstream's Helm runtime makes an owner, is none afterwards.
#[must_use]
pub fn kept_metadata(meta: &ObjectMeta, identity: &Identity) -> Value {
    let owners: Vec<_> = meta
        .owner_references
        .iter()
        .flatten()
        .filter(|owner| !identity.is_of_extension(owner))
        .collect();
    let gone = [
        keys::OWNER_KIND_LABEL,
        keys::OWNER_NAME_LABEL,
        keys::MANAGED_BY_LABEL,
    ];
    let mut labels: BTreeMap<&str, Option<&str>> = gone.into_iter().map(|label| (label, None)).collect();
    labels.insert(keys::KEPT_FROM_LABEL, Some(&identity.owner_name));
    json!({
        "labels": labels,
        "annotations": {keys::REVISION_ANNOTATION: null},
        "ownerReferences": owners,
    })
}

#[cfg(test)]
mod tests {
    use olm_api::CollisionProtection;

    use super::*;
    use crate::ownership::{Claim, Release, claim, release};

    fn crd(strategy: &str, versions: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "buoys.example.com"},
            "spec": {"group": "example.com", "names": {"plural": "buoys"},
                "conversion": {"strategy": strategy}, "versions": versions},
            "status": {"conditions": [{"type": "Established", "status": "True"}]},
        }))
        .unwrap()
    }

    #[test]
    fn pages_give_the_number() {
        assert_eq!(Count::of_page(0, None, None), Count::Exact(0));
        assert_eq!(Count::of_page(1, Some(""), None), Count::Exact(1));
        assert_eq!(Count::of_page(1, Some("more"), Some(6)), Count::Exact(7));
        assert_eq!(Count::of_page(1, Some("more"), None), Count::Several);
        assert_eq!(Count::of_page(1, Some("more"), Some(-1)), Count::Several);
    }

    #[test]
    fn only_a_certain_zero_lets_a_crd_go() {
        use CustomResourcePolicy::{Block, Delete, Keep};
        let unknown = Count::unknown("the webhook is gone");
        for policy in CustomResourcePolicy::ALL {
            assert_eq!(fate(policy, &Count::Exact(0)), Fate::Delete);
        }
        for count in [Count::Exact(1), Count::Several, unknown] {
            assert_eq!(fate(Keep, &count), Fate::Keep);
            assert_eq!(fate(Block, &count), Fate::Wait);
            assert_eq!(fate(Delete, &count), Fate::Delete);
        }
    }

    #[test]
    fn custom_resources_are_listed_in_the_stored_version_if_possible() {
        let version = |name: &str, served: bool, storage: bool| json!({"name": name, "served": served, "storage": storage});
        let chosen = |versions: Value| match listing(&crd("None", &versions)) {
            Listing::In { version, .. } => version,
            other => format!("{other:?}"),
        };
        assert_eq!(
            chosen(json!([version("v1", true, false), version("v2", true, true)])),
            "v2"
        );
        assert_eq!(
            chosen(json!([version("v1", true, false), version("v2", false, true)])),
            "v1"
        );
        assert_eq!(chosen(json!([version("v1", false, true)])), "Unserved");
        let mut young = crd("None", &json!([version("v1", true, true)]));
        young.data["status"] = json!({});
        assert_eq!(listing(&young), Listing::NeverEstablished);
    }

    #[test]
    fn a_lost_conversion_webhook_is_told() {
        let two = json!([{"name": "v1", "served": true, "storage": false}, {"name": "v2", "served": true, "storage": true}]);
        assert_eq!(readable_in(&crd("Webhook", &two).data).as_deref(), Some("v2"));
        assert_eq!(readable_in(&crd("None", &two).data), None);
        let one = json!([{"name": "v1", "served": true, "storage": true}]);
        assert_eq!(readable_in(&crd("Webhook", &one).data), None);
        let held = HeldCrd {
            name: "buoys.example.com".to_owned(),
            count: Count::Exact(2),
            readable_in: Some("v2".to_owned()),
        };
        assert_eq!(
            held.to_string(),
            "buoys.example.com holds 2 custom resources, readable in version v2 alone until its conversion webhook is back"
        );
        assert!(Count::unknown(&"x".repeat(9000)).to_string().len() < 400);
    }

    #[test]
    fn kept_crds_belong_to_nobody_and_are_adopted_again() {
        let before: ObjectMeta = serde_json::from_value(json!({
            "labels": {keys::OWNER_NAME_LABEL: "x", keys::OWNER_KIND_LABEL: "ClusterExtension",
                keys::MANAGED_BY_LABEL: keys::MANAGED_BY_VALUE, "app": "buoy"},
            "annotations": {keys::REVISION_ANNOTATION: "2", keys::PACKAGE_NAME_ANNOTATION: "p"},
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "K", "name": "x-2", "uid": "us", "controller": true},
                {"apiVersion": "v1", "kind": "K", "name": "x-1", "uid": "old"},
                // From upstream's Helm runtime: the garbage collector would delete the CRD with the extension.
                {"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "name": "x", "uid": "extension"},
                {"apiVersion": "v1", "kind": "K", "name": "foreign", "uid": "other"}],
        }))
        .unwrap();
        assert_eq!(
            release(&before, &Identity::second(), CollisionProtection::Prevent),
            Release::Delete
        );
        let change = kept_metadata(&before, &Identity::second());
        let mut after = serde_json::to_value(&before).unwrap();
        for section in ["labels", "annotations"] {
            for (key, value) in change[section].as_object().unwrap() {
                let section = after[section].as_object_mut().unwrap();
                match value {
                    Value::Null => drop(section.remove(key)),
                    value => drop(section.insert(key.clone(), value.clone())),
                }
            }
        }
        after["ownerReferences"] = change["ownerReferences"].clone();
        let after: ObjectMeta = serde_json::from_value(after).unwrap();
        let owners = after.owner_references.as_deref().unwrap_or_default();
        let owners: Vec<&str> = owners.iter().map(|owner| owner.name.as_str()).collect();
        assert_eq!(owners, ["foreign"]);
        assert_eq!(after.labels.as_ref().unwrap().len(), 2);
        assert!(is_kept(&after) && !is_kept(&before));
        assert_eq!(
            release(&after, &Identity::second(), CollisionProtection::Prevent),
            Release::Keep
        );
        let another = Identity {
            owner_name: "y".to_owned(),
            ..Identity::second()
        };
        for who in [Identity::second(), another] {
            assert_eq!(
                claim(&after, &who, CollisionProtection::IfNoController),
                Claim::Adopt
            );
        }
    }
}
