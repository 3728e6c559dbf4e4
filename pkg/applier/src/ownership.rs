//! Ownership of objects on the cluster. Pure.
//!
//! Invariant: a revision takes over an object only if it owns it or if collision protection allows it, and deletes
//! only objects that it owns.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use olm_api::{CollisionProtection, GROUP, keys};
use olm_text::object::group_version;

/// Another revision of the same extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sibling {
    /// Uid.
    pub uid: String,
    /// Value of `spec.revision`.
    pub number: i64,
    /// True if the revision is being deleted.
    pub deleting: bool,
    /// True if the revision keeps its objects: it is neither archived nor being deleted.
    pub active: bool,
}

/// Identity of the acting revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name of the ClusterObjectSet.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Value of `spec.revision`.
    pub number: i64,
    /// Value of the owner-name label; empty without the label.
    pub owner_name: String,
    /// The other revisions.
    pub siblings: Vec<Sibling>,
}

impl Identity {
    /// Returns true if `owner` is this revision, another one of its extension, or the extension itself.
    ///
    /// Revisions that are gone, and a former extension of the same name, count by their names: a reference to them leaves the object to
    /// the garbage collector.
    pub(crate) fn is_of_extension(&self, owner: &OwnerReference) -> bool {
        owner.uid == self.uid
            || self.siblings.iter().any(|sibling| sibling.uid == owner.uid)
            || self.is_extension(owner)
            || self.revision_named_by(owner).is_some()
    }

    /// Returns true if `owner` is the extension: upstream's Helm runtime makes it the controller of every object.
    pub(crate) fn is_extension(&self, owner: &OwnerReference) -> bool {
        !self.owner_name.is_empty()
            && is_of_olm(owner, keys::OWNER_KIND_CLUSTER_EXTENSION)
            && owner.name == self.owner_name
    }

    /// Returns the number of the extension's revision that `owner` names, known or not.
    fn revision_named_by(&self, owner: &OwnerReference) -> Option<u64> {
        if self.owner_name.is_empty() || !is_of_olm(owner, "ClusterObjectSet") {
            return None;
        }
        let number = owner
            .name
            .strip_prefix(self.owner_name.as_str())?
            .strip_prefix('-')?;
        number.parse().ok()
    }

    /// Returns true if `owner` is by its name a newer revision of the extension that this process does not know: not yet, or not any more.
    fn is_unknown_newer(&self, owner: &OwnerReference) -> bool {
        let number = self.revision_named_by(owner).map(i64::try_from);
        let is_known = self.siblings.iter().any(|sibling| sibling.uid == owner.uid);
        !is_known && matches!(number, Some(Ok(number)) if number > self.number)
    }

    /// Returns true if the removal of this revision is part of a removal of `owner`: the revision itself, an older one that is archived, one
    /// that is being deleted, too, or the extension. If the extension `leaves`, each of its revisions goes, known or not.
    ///
    /// Otherwise an active revision stays: a newer one takes the objects over, and an older one [gets them back](heir). Its objects do not
    /// concern the removal.
    pub(crate) fn goes_with(&self, owner: &OwnerReference, leaves: bool) -> bool {
        if leaves {
            return self.is_of_extension(owner);
        }
        let mut siblings = self.siblings.iter();
        owner.uid == self.uid
            || self.is_extension(owner)
            || siblings.any(|sibling| sibling.uid == owner.uid && self.goes_too(sibling))
    }

    /// Returns true if another revision goes when this one does, also if the extension stays.
    pub(crate) fn goes_too(&self, sibling: &Sibling) -> bool {
        sibling.deleting || sibling.number < self.number && !sibling.active
    }

    /// Returns true if another revision can get objects back when this one is removed and the extension stays.
    fn can_inherit(&self, sibling: &Sibling) -> bool {
        sibling.active && sibling.number < self.number
    }

    /// Returns true if any other revision can get objects back.
    pub(crate) fn has_heirs(&self) -> bool {
        self.siblings.iter().any(|sibling| self.can_inherit(sibling))
    }

    /// Returns revision 2 of an extension, after a revision 1, for tests.
    #[cfg(test)]
    pub(crate) fn second() -> Self {
        Self {
            name: "x-2".to_owned(),
            uid: "us".to_owned(),
            number: 2,
            owner_name: "x".to_owned(),
            siblings: vec![Sibling {
                uid: "old".to_owned(),
                number: 1,
                deleting: false,
                active: true,
            }],
        }
    }
}

/// Returns true if `owner` is of this kind of the API group of OLM, in any version.
fn is_of_olm(owner: &OwnerReference, kind: &str) -> bool {
    owner.kind == kind && group_version(&owner.api_version).0 == GROUP
}

/// Decision about an existing object.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// The revision owns the object.
    Owned,
    /// Take over; other owners stay as plain owners.
    Adopt,
    /// A newer revision owns the object: leave it.
    Superseded,
    /// Another controller or user owns the object.
    Collision {
        /// The controller, if any.
        controller: Option<OwnerReference>,
    },
}

/// Decision about an object when the revision is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Delete the object.
    Delete,
    /// Remove the revision's owner reference.
    RemoveOwner,
    /// The revision is the only owner that is left, and no controller: a newer revision has taken the object over, and is gone. If the
    /// extension leaves, nobody else deletes the object: delete it. Otherwise remove the owner reference, so that the object outlives
    /// the revision.
    LastOwner,
    /// The object does not belong to the revision.
    Keep,
}

/// Returns the controller among the owners.
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

/// Returns true if label and annotation belong to this extension.
fn has_extension_marks(meta: &ObjectMeta, identity: &Identity) -> bool {
    let label = |key: &str| meta.labels.as_ref().and_then(|l| l.get(key)).map(String::as_str);
    !identity.owner_name.is_empty()
        && label(keys::OWNER_NAME_LABEL) == Some(identity.owner_name.as_str())
        && label(keys::MANAGED_BY_LABEL) == Some(keys::MANAGED_BY_VALUE)
}

/// Returns true if `identity` owns an object without a controller, and no newer active revision has the marked number.
fn is_left_to(meta: &ObjectMeta, identity: &Identity, marked: Option<i64>) -> bool {
    let mut siblings = identity.siblings.iter();
    let is_taken = siblings.any(|s| s.active && s.number > identity.number && Some(s.number) == marked);
    is_owner(meta, &identity.uid) && !is_taken
}

fn is_owner(meta: &ObjectMeta, uid: &str) -> bool {
    meta.owner_references
        .iter()
        .flatten()
        .any(|owner| owner.uid == uid)
}

/// Decides how `identity` may treat the object with the metadata `meta`.
#[must_use]
pub fn claim(meta: &ObjectMeta, identity: &Identity, protection: CollisionProtection) -> Claim {
    let Some(owner) = controller(meta) else {
        let revision = revision_of(meta);
        // Another client removed the owner reference: drift, not a foreign object. Or a newer revision had taken the object over and is
        // gone without a teardown, and the garbage collector removed its reference: the owner that is left takes the object back.
        let is_ours = revision == Some(identity.number);
        if has_extension_marks(meta, identity) && (is_ours || is_left_to(meta, identity, revision)) {
            return Claim::Adopt;
        }
        let foreign = meta
            .annotations
            .iter()
            .flatten()
            .any(|(k, _)| k == keys::REVISION_ANNOTATION)
            && !has_extension_marks(meta, identity);
        return match protection {
            CollisionProtection::IfNoController | CollisionProtection::None if !foreign => Claim::Adopt,
            _ => Claim::Collision { controller: None },
        };
    };
    if owner.uid == identity.uid {
        return Claim::Owned;
    }
    if let Some(sibling) = identity.siblings.iter().find(|s| s.uid == owner.uid) {
        return if sibling.number > identity.number {
            Claim::Superseded
        } else {
            Claim::Adopt
        };
    }
    match protection {
        // A leader that is late never takes an object back from a newer revision. If that one is gone, the garbage collector removes its
        // reference or the object.
        CollisionProtection::None if !identity.is_unknown_newer(owner) => Claim::Adopt,
        _ => Claim::Collision {
            controller: Some(owner.clone()),
        },
    }
}

/// Returns true if the object has the marks of exactly this revision, whoever owns it.
#[must_use]
pub fn has_revision_marks(meta: &ObjectMeta, identity: &Identity) -> bool {
    has_extension_marks(meta, identity) && revision_of(meta) == Some(identity.number)
}

/// Returns true if another known revision of this extension controls the object.
pub(crate) fn is_of_sibling(meta: &ObjectMeta, identity: &Identity) -> bool {
    controller(meta).is_some_and(|owner| identity.siblings.iter().any(|sibling| sibling.uid == owner.uid))
}

/// Returns true if another revision of this extension applied the object last.
pub(crate) fn has_marks_of_another(meta: &ObjectMeta, identity: &Identity) -> bool {
    has_extension_marks(meta, identity) && revision_of(meta).is_some_and(|number| number != identity.number)
}

/// Decides how `identity` treats the object with the metadata `meta` at its own removal.
///
/// An object without this revision's owner reference stays: the garbage collector removes the reference to orphan an
/// object. An object of the extension itself goes like one of this revision if the revision could take it over, which the revision
/// from a Helm release can: the garbage collector would delete it with the extension, and only the removal of the revision keeps what
/// holds objects of others.
#[must_use]
pub fn release(meta: &ObjectMeta, identity: &Identity, protection: CollisionProtection) -> Release {
    let of_helm = |owner| protection == CollisionProtection::None && identity.is_extension(owner);
    let owners = || meta.owner_references.iter().flatten();
    let ours = owners().filter(|owner| owner.uid == identity.uid).count();
    match controller(meta) {
        Some(owner) if owner.uid == identity.uid || of_helm(owner) => Release::Delete,
        _ if ours == 0 => Release::Keep,
        _ if ours == owners().count() => Release::LastOwner,
        _ => Release::RemoveOwner,
    }
}

/// Returns the revision that gets an object of `identity` back if `identity` is removed and the extension stays: the newest one of the
/// older active revisions among the owners. `None` if `identity` is not the controller, or if there is no such owner.
///
/// The removal of a newer revision, such as an upgrade that is stuck, must not take away what an older one still owns. An older revision
/// is an owner until it has removed its reference or the object, so a write that is bound to the state that was read never gives the
/// object to a revision which is done with it.
#[must_use]
pub fn heir<'a>(meta: &ObjectMeta, identity: &'a Identity) -> Option<&'a Sibling> {
    controller(meta).filter(|owner| owner.uid == identity.uid)?;
    let siblings = identity.siblings.iter();
    siblings
        .filter(|sibling| identity.can_inherit(sibling) && is_owner(meta, &sibling.uid))
        .max_by_key(|sibling| sibling.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn identity() -> Identity {
        let siblings = [("old", 1), ("new", 3)]
            .map(|(uid, number)| Sibling {
                uid: uid.to_owned(),
                number,
                deleting: false,
                active: true,
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
    fn only_newer_siblings_take_over() {
        let claim_of = |uid| claim(&owned(uid), &identity(), CollisionProtection::Prevent);
        assert_eq!(claim_of("us"), Claim::Owned);
        assert_eq!(claim_of("old"), Claim::Adopt);
        assert_eq!(claim_of("new"), Claim::Superseded);
        assert!(matches!(
            claim_of("other"),
            Claim::Collision { controller: Some(_) }
        ));
        assert_eq!(
            release(&owned("us"), &identity(), CollisionProtection::Prevent),
            Release::Delete
        );
        assert_eq!(
            release(&owned("new"), &identity(), CollisionProtection::Prevent),
            Release::Keep
        );
        let extension = |name: &str| {
            let owner = json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "name": name, "uid": "e",
                "controller": true});
            meta(&json!({"ownerReferences": [owner]}))
        };
        let released = |name, protection| release(&extension(name), &identity(), protection);
        assert_eq!(released("x", CollisionProtection::None), Release::Delete);
        assert_eq!(released("x", CollisionProtection::Prevent), Release::Keep);
        assert_eq!(released("y", CollisionProtection::None), Release::Keep);
        let mut shared = owned("new");
        let ours = owned("us").owner_references.into_iter().flatten();
        let plain = ours.map(|owner| OwnerReference {
            controller: None,
            ..owner
        });
        shared.owner_references.as_mut().unwrap().extend(plain);
        assert_eq!(
            release(&shared, &identity(), CollisionProtection::Prevent),
            Release::RemoveOwner
        );
        // The garbage collector removes references to what is gone.
        let owners = shared.owner_references.as_mut().unwrap();
        owners.retain(|owner| owner.controller.is_none());
        let alone = release(&shared, &identity(), CollisionProtection::Prevent);
        assert_eq!(alone, Release::LastOwner);
    }

    #[test]
    fn protection_decides_about_foreign_objects() {
        use CollisionProtection::{IfNoController, None, Prevent};
        let free = ObjectMeta::default();
        assert_eq!(
            claim(&free, &identity(), Prevent),
            Claim::Collision {
                controller: Option::None
            }
        );
        assert_eq!(claim(&free, &identity(), IfNoController), Claim::Adopt);
        assert_eq!(claim(&owned("other"), &identity(), None), Claim::Adopt);
        assert!(matches!(
            claim(&owned("other"), &identity(), IfNoController),
            Claim::Collision { .. }
        ));
        let foreign = meta(&json!({"annotations": {keys::REVISION_ANNOTATION: "2"}}));
        assert!(matches!(
            claim(&foreign, &identity(), None),
            Claim::Collision { .. }
        ));
        assert_eq!(release(&foreign, &identity(), Prevent), Release::Keep);
    }

    #[test]
    fn a_stripped_reference_is_drift() {
        let stripped = meta(&json!({"annotations": {keys::REVISION_ANNOTATION: "2"},
            "labels": {keys::OWNER_NAME_LABEL: "x", keys::MANAGED_BY_LABEL: keys::MANAGED_BY_VALUE}}));
        assert_eq!(
            claim(&stripped, &identity(), CollisionProtection::Prevent),
            Claim::Adopt
        );
        assert_eq!(
            release(&stripped, &identity(), CollisionProtection::Prevent),
            Release::Keep
        );
        assert!(has_revision_marks(&stripped, &identity()));
    }

    /// Returns an object without owners, with the marks of revision `number` of the extension `name`.
    fn marked(name: &str, number: i64) -> ObjectMeta {
        meta(
            &json!({"annotations": {keys::REVISION_ANNOTATION: number.to_string()},
            "labels": {keys::OWNER_NAME_LABEL: name, keys::MANAGED_BY_LABEL: keys::MANAGED_BY_VALUE}}),
        )
    }

    #[test]
    fn marks_of_others_are_no_drift() {
        let anonymous = Identity {
            owner_name: String::new(),
            ..identity()
        };
        for (object, identity) in [
            (marked("other", 2), identity()),
            (marked("x", 3), identity()),
            // A revision without the label belongs to no extension.
            (marked("", 2), anonymous),
        ] {
            let found = claim(&object, &identity, CollisionProtection::Prevent);
            assert_eq!(found, Claim::Collision { controller: None });
            assert!(!has_revision_marks(&object, &identity));
        }
        let mut unmanaged = marked("x", 2);
        unmanaged.labels.as_mut().unwrap().remove(keys::MANAGED_BY_LABEL);
        assert!(!has_revision_marks(&unmanaged, &identity()));
    }

    #[test]
    fn an_equal_number_supersedes_nothing() {
        let mut twin = identity();
        twin.siblings[0].number = twin.number;
        let found = claim(&owned("old"), &twin, CollisionProtection::Prevent);
        assert_eq!(found, Claim::Adopt);
    }

    #[test]
    fn an_object_without_a_controller_is_left_to_its_owner() {
        let mut twin = identity();
        twin.siblings[0].number = twin.number;
        let mut object = owned("us");
        object.owner_references.as_mut().unwrap()[0].controller = None;
        assert!(is_left_to(&object, &identity(), Some(1)));
        assert!(!is_left_to(&object, &identity(), Some(3)), "a newer revision");
        assert!(is_left_to(&object, &twin, Some(2)), "an equal number");
        assert!(!is_left_to(&owned("old"), &identity(), Some(1)), "of others");
    }

    #[test]
    fn other_revisions_are_known_by_controller_and_by_marks() {
        for (uid, expected) in [("us", false), ("old", true), ("new", true), ("other", false)] {
            assert_eq!(is_of_sibling(&owned(uid), &identity()), expected, "{uid}");
        }
        assert!(!is_of_sibling(&ObjectMeta::default(), &identity()));
        for (name, number, expected) in [("x", 1, true), ("x", 2, false), ("x", 3, true), ("y", 1, false)] {
            let found = has_marks_of_another(&marked(name, number), &identity());
            assert_eq!(found, expected, "{name}-{number}");
        }
        assert!(!has_marks_of_another(&ObjectMeta::default(), &identity()));
    }

    #[test]
    fn a_newer_revision_that_is_not_known_keeps_its_objects() {
        let claim_of = |api_version: &str, kind: &str, name: &str| {
            let owner = json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": "unknown", "controller": true});
            let meta = meta(&json!({"ownerReferences": [owner]}));
            claim(&meta, &identity(), CollisionProtection::None)
        };
        let group = "olm.operatorframework.io/v1";
        let newer = claim_of(group, "ClusterObjectSet", "x-3");
        assert!(matches!(newer, Claim::Collision { .. }), "{newer:?}");
        for (api_version, kind, name) in [
            (group, "ClusterObjectSet", "x-1"),
            (group, "ClusterObjectSet", "x-2"),
            (group, "ClusterObjectSet", "y-3"),
            (group, "ClusterObjectSet", "x-18446744073709551615"),
            (group, "ClusterExtension", "x-3"),
            ("example.com/v1", "ClusterObjectSet", "x-3"),
        ] {
            assert_eq!(claim_of(api_version, kind, name), Claim::Adopt, "{name}");
        }
    }

    #[test]
    fn owners_of_the_extension_are_known_by_uid_and_by_name() {
        let owner = |api_version: &str, kind: &str, name: &str, uid: &str| OwnerReference {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        };
        let ours = |kind: &str, name: &str| owner("olm.operatorframework.io/v1", kind, name, "any");
        let known = |owner: &OwnerReference| identity().is_of_extension(owner);
        assert!(known(&owner("v1", "K", "n", "us")) && known(&owner("v1", "K", "n", "old")));
        assert!(known(&ours("ClusterExtension", "x")));
        assert!(known(&ours("ClusterObjectSet", "x-7")));
        for other in [
            ours("ClusterExtension", "y"),
            ours("ClusterExtension", "x-1"),
            ours("ClusterObjectSet", "x-y-1"),
            ours("ClusterObjectSet", "x"),
            owner("example.com/v1", "ClusterExtension", "x", "any"),
        ] {
            assert!(!known(&other), "{other:?}");
        }
        let anonymous = Identity {
            owner_name: String::new(),
            ..identity()
        };
        assert!(!anonymous.is_of_extension(&ours("ClusterExtension", "")));
        assert!(!anonymous.is_of_extension(&ours("ClusterObjectSet", "-1")));
    }

    #[test]
    fn a_newer_revision_that_stays_does_not_go_along() {
        let owner = |kind: &str, name: &str, uid: &str| OwnerReference {
            api_version: "olm.operatorframework.io/v1".to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        };
        let revision = |name: &str, uid: &str| owner("ClusterObjectSet", name, uid);
        let extension = owner("ClusterExtension", "x", "any");
        let mut identity = identity();
        for (leaves, newer) in [(false, false), (true, true)] {
            assert!(identity.goes_with(&revision("x-2", "us"), leaves));
            assert_eq!(identity.goes_with(&revision("x-1", "old"), leaves), leaves);
            assert!(identity.goes_with(&extension, leaves));
            assert_eq!(identity.goes_with(&revision("x-3", "new"), leaves), newer);
            let unseen = revision("x-4", "no watch shows it");
            assert_eq!(identity.goes_with(&unseen, leaves), newer);
            assert!(!identity.goes_with(&revision("y-1", "other"), leaves));
        }
        identity.siblings[1].deleting = true;
        assert!(identity.goes_with(&revision("x-3", "new"), false));
        identity.siblings[0].active = false;
        assert!(identity.goes_with(&revision("x-1", "old"), false), "archived");
        let mut twin = identity;
        twin.siblings[0].number = twin.number;
        assert!(!twin.goes_with(&revision("x-1", "old"), false));
    }

    /// Returns an object with the marks of revision `number` and these owners, the first of them as the controller if `controlled`.
    fn shared(number: i64, owners: &[&str], controlled: bool) -> ObjectMeta {
        let mut meta = marked("x", number);
        let owners = owners.iter().enumerate().map(|(index, uid)| OwnerReference {
            uid: (*uid).to_owned(),
            controller: Some(controlled && index == 0),
            ..OwnerReference::default()
        });
        meta.owner_references = Some(owners.collect());
        meta
    }

    #[test]
    fn the_newest_older_active_owner_is_the_heir() {
        let mut identity = identity();
        let sibling = |uid: &str, number: i64| Sibling {
            uid: uid.to_owned(),
            number,
            deleting: false,
            active: true,
        };
        identity.siblings.push(sibling("older", 0));
        identity.siblings.push(sibling("twin", 2));
        let of = |identity: &Identity, owners: &[&str]| {
            heir(&shared(2, owners, true), identity).map(|heir| heir.number)
        };
        assert_eq!(of(&identity, &["us", "older", "old", "new", "twin"]), Some(1));
        assert_eq!(of(&identity, &["us", "older"]), Some(0));
        assert_eq!(
            of(&identity, &["us"]),
            None,
            "an object that this revision brought"
        );
        assert_eq!(of(&identity, &["us", "new", "twin"]), None);
        assert_eq!(
            of(&identity, &["new", "us", "old"]),
            None,
            "the controller decides"
        );
        assert!(identity.has_heirs());
        for sibling in &mut identity.siblings {
            sibling.active = false;
        }
        assert_eq!(
            of(&identity, &["us", "older", "old"]),
            None,
            "archived or deleted"
        );
        assert!(!identity.has_heirs());
    }

    #[test]
    fn an_owner_takes_back_what_a_revision_that_is_gone_had() {
        let claim_of = |identity: &Identity, number, owners: &[&str]| {
            claim(
                &shared(number, owners, false),
                identity,
                CollisionProtection::Prevent,
            )
        };
        let mut identity = identity();
        let collision = Claim::Collision { controller: None };
        assert_eq!(
            claim_of(&identity, 4, &["us"]),
            Claim::Adopt,
            "revision 4 is not known"
        );
        assert_eq!(claim_of(&identity, 4, &["old"]), collision, "no owner");
        assert_eq!(claim_of(&identity, 3, &["us"]), collision, "revision 3 takes it");
        identity.siblings[1].active = false;
        assert_eq!(claim_of(&identity, 3, &["us"]), Claim::Adopt);
        let mut foreign = shared(4, &["us"], false);
        foreign.labels = None;
        assert_eq!(
            claim(&foreign, &identity, CollisionProtection::Prevent),
            collision
        );
    }
}
