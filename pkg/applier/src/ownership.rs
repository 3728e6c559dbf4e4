//! Whose an object on the cluster is, and what a revision may do with it. Pure.
//!
//! Invariant: an object is taken or deleted only when it is this revision's or, for taking, when collision protection allows it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use olm_api::{CollisionProtection, keys};

/// Another revision of the same extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sibling {
    /// Its uid.
    pub uid: String,
    /// Its `spec.revision`.
    pub number: i64,
}

/// The revision that is acting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the ClusterObjectSet.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its `spec.revision`.
    pub number: i64,
    /// Its owner-name label; empty when it has none.
    pub owner_name: String,
    /// The other revisions.
    pub siblings: Vec<Sibling>,
}

/// What to do with an object that exists.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// It is ours already.
    Ours,
    /// Take it over; its present owners stay as plain ones.
    Adopt,
    /// A newer revision has it: leave it alone.
    Progressed,
    /// It is somebody else's.
    Collision {
        /// The controller, where there is one.
        controller: Option<OwnerReference>,
    },
}

/// What to do with an object when the revision goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Delete it.
    Delete,
    /// Only take our owner reference away.
    Disown,
    /// It has nothing of ours.
    Leave,
}

/// The controller among the owners.
#[must_use]
pub fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references
        .iter()
        .flatten()
        .find(|owner| owner.controller == Some(true))
}

fn revision_of(meta: &ObjectMeta) -> Option<i64> {
    meta.annotations
        .as_ref()?
        .get(keys::REVISION_ANNOTATION)?
        .parse()
        .ok()
}

/// Whether all marks but the owner reference are this extension's.
fn marked(meta: &ObjectMeta, us: &Identity) -> bool {
    let label = |key: &str| meta.labels.as_ref().and_then(|l| l.get(key)).map(String::as_str);
    !us.owner_name.is_empty()
        && label(keys::OWNER_NAME_LABEL) == Some(us.owner_name.as_str())
        && label(keys::MANAGED_BY_LABEL) == Some(keys::MANAGED_BY_VALUE)
}

/// What `us` may do with the object of which `meta` is.
#[must_use]
pub fn claim(meta: &ObjectMeta, us: &Identity, protection: CollisionProtection) -> Claim {
    let Some(owner) = controller(meta) else {
        let revision = revision_of(meta);
        // Somebody stripped the reference from what this revision made; that is drift, not a stranger's object.
        if marked(meta, us) && revision == Some(us.number) {
            return Claim::Adopt;
        }
        let foreign = meta
            .annotations
            .iter()
            .flatten()
            .any(|(k, _)| k == keys::REVISION_ANNOTATION)
            && !marked(meta, us);
        return match protection {
            CollisionProtection::IfNoController | CollisionProtection::None if !foreign => Claim::Adopt,
            _ => Claim::Collision { controller: None },
        };
    };
    if owner.uid == us.uid {
        return Claim::Ours;
    }
    if let Some(sibling) = us.siblings.iter().find(|s| s.uid == owner.uid) {
        return if sibling.number > us.number {
            Claim::Progressed
        } else {
            Claim::Adopt
        };
    }
    match protection {
        CollisionProtection::None => Claim::Adopt,
        _ => Claim::Collision {
            controller: Some(owner.clone()),
        },
    }
}

/// Whether the object carries the marks of exactly this revision, whoever owns it.
#[must_use]
pub fn marked_by(meta: &ObjectMeta, us: &Identity) -> bool {
    marked(meta, us) && revision_of(meta) == Some(us.number)
}

/// What `us`, going away, does with the object of which `meta` is.
///
/// An object without our reference stays: the garbage collector takes the reference away when objects are to be orphaned.
#[must_use]
pub fn release(meta: &ObjectMeta, us: &Identity) -> Release {
    let referenced = meta
        .owner_references
        .iter()
        .flatten()
        .any(|owner| owner.uid == us.uid);
    match controller(meta) {
        Some(owner) if owner.uid == us.uid => Release::Delete,
        _ if referenced => Release::Disown,
        _ => Release::Leave,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn us() -> Identity {
        let siblings = [("old", 1), ("new", 3)]
            .map(|(uid, number)| Sibling {
                uid: uid.to_owned(),
                number,
            })
            .to_vec();
        Identity {
            name: "x-2".to_owned(),
            uid: "us".to_owned(),
            number: 2,
            owner_name: "x".to_owned(),
            siblings,
        }
    }

    fn owned(uid: &str) -> ObjectMeta {
        meta(&json!({"ownerReferences": [
            {"apiVersion": "v1", "kind": "K", "name": "n", "uid": uid, "controller": true}]}))
    }

    fn meta(value: &Value) -> ObjectMeta {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn siblings_hand_over_forwards_only() {
        let rule = |uid| claim(&owned(uid), &us(), CollisionProtection::Prevent);
        assert_eq!(rule("us"), Claim::Ours);
        assert_eq!(rule("old"), Claim::Adopt);
        assert_eq!(rule("new"), Claim::Progressed);
        assert!(matches!(rule("other"), Claim::Collision { controller: Some(_) }));
        assert_eq!(release(&owned("us"), &us()), Release::Delete);
        assert_eq!(release(&owned("new"), &us()), Release::Leave);
    }

    #[test]
    fn protection_decides_about_strangers() {
        use CollisionProtection::{IfNoController, None, Prevent};
        let free = ObjectMeta::default();
        assert_eq!(
            claim(&free, &us(), Prevent),
            Claim::Collision {
                controller: Option::None
            }
        );
        assert_eq!(claim(&free, &us(), IfNoController), Claim::Adopt);
        assert_eq!(claim(&owned("other"), &us(), None), Claim::Adopt);
        assert!(matches!(
            claim(&owned("other"), &us(), IfNoController),
            Claim::Collision { .. }
        ));
        let foreign = meta(&json!({"annotations": {keys::REVISION_ANNOTATION: "2"}}));
        assert!(matches!(claim(&foreign, &us(), None), Claim::Collision { .. }));
        assert_eq!(release(&foreign, &us()), Release::Leave);
    }

    #[test]
    fn a_stripped_reference_is_drift() {
        let stripped = meta(&json!({"annotations": {keys::REVISION_ANNOTATION: "2"},
            "labels": {keys::OWNER_NAME_LABEL: "x", keys::MANAGED_BY_LABEL: keys::MANAGED_BY_VALUE}}));
        assert_eq!(
            claim(&stripped, &us(), CollisionProtection::Prevent),
            Claim::Adopt
        );
        assert_eq!(release(&stripped, &us()), Release::Leave);
        assert!(marked_by(&stripped, &us()));
    }
}
