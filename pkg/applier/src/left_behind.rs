//! Objects of others in a namespace that the removal of a revision would delete. Pure.
//!
//! The API server deletes all objects of a namespace with it. A namespace goes with its extension only if nothing in it would be
//! missed: objects of Kubernetes and OpenShift that every namespace has, objects that follow from others or are copies or views of
//! others, and records of what happened.

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use olm_text::object::group_version;
use olm_text::{cut, quoted};

use crate::ownership::Identity;

/// Number of objects that a message names.
const NAMED: usize = 3;
/// Maximum length of a name in a message, in bytes.
const MAX_NAME: usize = 253;
/// Maximum length of the reason why objects cannot be listed, in bytes.
const MAX_REASON: usize = 256;

/// Kinds, with their groups, whose objects nobody misses: records of what happened, leases of processes that are gone,
/// addresses that a controller derives from a Service, and OpenShift's views of roles and bindings, which count in their own group.
const RECORDS: [(&str, &str); 7] = [
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("coordination.k8s.io", "Lease"),
    ("", "Endpoints"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("authorization.openshift.io", "Role"),
    ("authorization.openshift.io", "RoleBinding"),
];

/// Objects, with their groups and kinds, that Kubernetes or OpenShift makes in every namespace. Secrets of these service accounts have
/// varying names and are recognized by their annotations.
const USUAL: [(&str, &str, &str); 8] = [
    ("", "ConfigMap", "kube-root-ca.crt"),
    ("", "ConfigMap", "openshift-service-ca.crt"),
    ("", "ServiceAccount", "default"),
    ("", "ServiceAccount", "builder"),
    ("", "ServiceAccount", "deployer"),
    ("rbac.authorization.k8s.io", "RoleBinding", "system:deployers"),
    (
        "rbac.authorization.k8s.io",
        "RoleBinding",
        "system:image-builders",
    ),
    ("rbac.authorization.k8s.io", "RoleBinding", "system:image-pullers"),
];

/// Annotations of a Secret with the name of the service account that it was made for: of Kubernetes, and of OpenShift since 4.16 for
/// the credentials of its registry.
const ACCOUNT_ANNOTATIONS: [&str; 2] = [
    "kubernetes.io/service-account.name",
    "openshift.io/internal-registry-auth-token.service-account",
];
/// Label of a ClusterServiceVersion that OLM Classic copied into a namespace, with the namespace of the original.
const COPY_LABEL: &str = "olm.copiedFrom";

/// A kind as group and name.
pub type GroupKind = (String, String);

/// Returns true if the objects of a kind never keep a namespace.
#[must_use]
pub fn is_record(group: &str, kind: &str) -> bool {
    RECORDS.contains(&(group, kind))
}

/// Returns true if an object of this kind in the namespace is one of others. `namespaced` are the namespaced kinds of the cluster:
/// an object whose owners are in the namespace goes with them.
#[must_use]
pub fn is_of_others(
    (group, kind): (&str, &str),
    meta: &ObjectMeta,
    identity: &Identity,
    namespaced: &BTreeSet<GroupKind>,
) -> bool {
    let name = meta.name.as_deref().unwrap_or_default();
    let usual = |kind: &str, name: &str| USUAL.contains(&(group, kind, name));
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    let follows = |api_version: &str, kind: &str| {
        let (group, _) = group_version(api_version);
        namespaced.contains(&(group.to_owned(), kind.to_owned()))
    };
    let of_usual_account = kind == "Secret"
        && meta.annotations.iter().any(|annotations| {
            let mut accounts = ACCOUNT_ANNOTATIONS.iter().filter_map(|key| annotations.get(*key));
            accounts.any(|account| USUAL.contains(&("", "ServiceAccount", account.as_str())))
        });
    let copy = (group, kind) == ("operators.coreos.com", "ClusterServiceVersion")
        && meta.labels.iter().any(|labels| labels.contains_key(COPY_LABEL));
    let goes_along = !owners.is_empty()
        && owners
            .iter()
            .all(|owner| identity.is_of_extension(owner) || follows(&owner.api_version, &owner.kind));
    !(meta.deletion_timestamp.is_some()
        || is_record(group, kind)
        || usual(kind, name)
        || of_usual_account
        || copy
        || goes_along)
}

/// A namespace that stays, because it holds objects of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldNamespace {
    /// Name of the namespace.
    pub name: String,
    /// Reason, after the name.
    why: String,
}

impl HeldNamespace {
    /// Returns the namespace with objects of others, each as kind and name; `None` without objects.
    #[must_use]
    pub fn holding(name: &str, objects: &[(String, String)]) -> Option<Self> {
        let named: Vec<String> = objects
            .iter()
            .take(NAMED)
            .map(|(kind, name)| format!("{} {}", quoted_kind(kind), quoted(name, MAX_NAME)))
            .collect();
        if named.is_empty() {
            return None;
        }
        let more = match objects.len().saturating_sub(named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(Self {
            name: name.to_owned(),
            why: format!(
                "holds objects that are not the extension's: {}{more}",
                named.join(", ")
            ),
        })
    }

    /// Returns a namespace whose objects cannot be listed. It counts as holding objects of others.
    #[must_use]
    pub fn unreadable(name: &str, kind: &str, reason: &str) -> Self {
        Self {
            name: name.to_owned(),
            why: format!(
                "counts as holding objects of others, because objects of kind {} cannot be listed ({})",
                quoted_kind(kind),
                cut(reason, MAX_REASON)
            ),
        }
    }
}

fn quoted_kind(kind: &str) -> String {
    olm_text::printable(&cut(kind, MAX_NAME)).into_owned()
}

/// Formats the namespace with the reason why it stays.
impl fmt::Display for HeldNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.why)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of_others(kind: (&str, &str), meta: Value) -> bool {
        let identity = Identity::second();
        let namespaced = BTreeSet::from([("apps".to_owned(), "ReplicaSet".to_owned())]);
        is_of_others(
            kind,
            &serde_json::from_value(meta).unwrap(),
            &identity,
            &namespaced,
        )
    }

    #[test]
    fn what_every_namespace_has_is_nobodys() {
        for (group, kind, name) in USUAL {
            assert!(!of_others((group, kind), json!({"name": name})), "{name}");
            assert!(of_others(("example.com", kind), json!({"name": name})), "{name}");
        }
        for kind in RECORDS {
            assert!(!of_others(kind, json!({"name": "a"})), "{kind:?}");
        }
        assert!(of_others(("", "ConfigMap"), json!({"name": "notes"})));
        assert!(of_others(("", "PersistentVolumeClaim"), json!({"name": "data"})));
        for annotation in ACCOUNT_ANNOTATIONS {
            let token = |account: &str| json!({"name": "t", "annotations": {annotation: account}});
            assert!(!of_others(("", "Secret"), token("default")), "{annotation}");
            assert!(of_others(("", "Secret"), token("robot")), "{annotation}");
        }
    }

    #[test]
    fn views_and_copies_of_objects_are_nobodys() {
        let binding = |group: &str, kind: &str| of_others((group, kind), json!({"name": "system:deployers"}));
        let views = "authorization.openshift.io";
        assert!(!binding(views, "RoleBinding") && !binding(views, "Role"));
        assert!(
            binding(views, "RoleBindingRestriction"),
            "stored in this group alone"
        );
        let own = ("rbac.authorization.k8s.io", "RoleBinding");
        assert!(of_others(own, json!({"name": "team"})), "counts in its own group");

        let copy = json!({"name": "pipelines.v1.2.3", "labels": {"olm.copiedFrom": "openshift-operators"}});
        let version = ("operators.coreos.com", "ClusterServiceVersion");
        assert!(!of_others(version, copy.clone()));
        assert!(of_others(version, json!({"name": "pipelines.v1.2.3"})));
        assert!(of_others(("operators.coreos.com", "Subscription"), copy));
    }

    #[test]
    fn objects_follow_owners_in_the_namespace_and_this_extension() {
        let owned = |owners: &[(&str, &str, &str)]| {
            let owners: Vec<Value> = owners
                .iter()
                .map(|(version, kind, uid)| json!({"apiVersion": version, "kind": kind, "name": "o", "uid": uid}))
                .collect();
            of_others(("", "Pod"), json!({"name": "a", "ownerReferences": owners}))
        };
        let replica_set = ("apps/v1", "ReplicaSet", "r");
        assert!(!owned(&[replica_set]));
        assert!(!owned(&[(
            "olm.operatorframework.io/v1",
            "ClusterObjectSet",
            "old"
        )]));
        let elsewhere = ("example.com/v1", "Fleet", "f");
        assert!(owned(&[elsewhere]) && owned(&[replica_set, elsewhere]));
        assert!(!of_others(
            ("", "Pod"),
            json!({"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"})
        ));
    }

    #[test]
    fn the_message_names_a_few() {
        let object = |name: &str| ("ConfigMap".to_owned(), name.to_owned());
        assert_eq!(HeldNamespace::holding("n", &[]), None);
        let held = HeldNamespace::holding("n", &["a", "b", "c", "d"].map(object)).unwrap();
        assert_eq!(
            held.to_string(),
            r#"n holds objects that are not the extension's: ConfigMap "a", ConfigMap "b", ConfigMap "c" and 1 more"#
        );
    }
}
