//! Numbers of revisions: they grow for the whole life of an extension, whoever deletes its revisions.
//!
//! A revision that goes leaves its number on its extension, unless a later revision exists, which does so in turn. The highest
//! number of all times is therefore that of a revision that exists, or the number on the extension.

use kube::{Resource as _, ResourceExt};
use olm_api::{ClusterObjectSet, keys};
use olm_applier::ownership;

/// Returns the highest number of a revision of the extension that is gone; 0 if no number is on the extension, or an invalid one.
pub fn highest_gone(extension: &impl ResourceExt) -> i64 {
    let noted = extension
        .annotations()
        .get(keys::HIGHEST_GONE_REVISION_ANNOTATION);
    noted.and_then(|number| number.parse().ok()).unwrap_or(0).max(0)
}

/// Returns true if a later revision of the same extension is in `family`, so that `set` can go without leaving its number. A `family` has
/// the revisions with the same owner label, also those of a former extension of the same name.
pub fn has_later<'a>(set: &ClusterObjectSet, family: impl IntoIterator<Item = &'a ClusterObjectSet>) -> bool {
    family
        .into_iter()
        .any(|other| controller(other) == controller(set) && other.spec.revision > set.spec.revision)
}

/// Returns true if the number of `set` must be on `extension`, which has the name of its extension, before `set` can go. An extension that
/// is being deleted gets no further revision.
pub fn must_be_noted(set: &ClusterObjectSet, extension: &impl ResourceExt) -> bool {
    let same = controller(set).is_none_or(|uid| extension.meta().uid.as_deref() == Some(uid));
    same && extension.meta().deletion_timestamp.is_none() && highest_gone(extension) < set.spec.revision
}

/// Returns the uid of the extension that controls the revision.
fn controller(set: &ClusterObjectSet) -> Option<&str> {
    ownership::controller(set.meta()).map(|owner| owner.uid.as_str())
}

#[cfg(test)]
mod tests {
    use olm_api::ClusterExtension;
    use serde_json::{Value, json};

    use super::*;

    fn revision(number: i64, of: &str, controller: Option<&str>) -> ClusterObjectSet {
        let owner = |uid: &str| json!([{"apiVersion": "v1", "kind": "K", "name": of, "uid": uid, "controller": true}]);
        serde_json::from_value(json!({
            "metadata": {"name": format!("{of}-{number}"), "labels": {keys::OWNER_NAME_LABEL: of},
                "ownerReferences": controller.map(owner)},
            "spec": {"lifecycleState": "Active", "revision": number, "collisionProtection": "Prevent"},
        }))
        .unwrap()
    }

    fn extension(metadata: &Value) -> ClusterExtension {
        let spec =
            json!({"namespace": "n", "source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    #[test]
    fn only_numbers_count() {
        let noted = |text: &str| {
            highest_gone(&extension(
                &json!({"annotations": {keys::HIGHEST_GONE_REVISION_ANNOTATION: text}}),
            ))
        };
        assert_eq!(highest_gone(&extension(&json!({}))), 0);
        assert_eq!(noted("7"), 7);
        for invalid in ["", "-7", "seven", "7.5", "9223372036854775808"] {
            assert_eq!(noted(invalid), 0, "{invalid}");
        }
    }

    #[test]
    fn the_last_revision_leaves_its_number() {
        let set = revision(2, "x", Some("u"));
        let later = |other: ClusterObjectSet| has_later(&set, [&set, &other]);
        assert!(later(revision(3, "x", Some("u"))));
        assert!(!later(revision(1, "x", Some("u"))));
        assert!(
            !later(revision(3, "x", Some("former"))),
            "of a former extension of the same name"
        );

        let noted = |number: &str| json!({"uid": "u", "annotations": {keys::HIGHEST_GONE_REVISION_ANNOTATION: number}});
        let must = |metadata: &Value| must_be_noted(&set, &extension(metadata));
        assert!(must(&json!({"uid": "u"})));
        assert!(must(&noted("1")));
        assert!(
            !must(&noted("2")) && !must(&noted("3")),
            "it is noted, or a later one"
        );
        assert!(!must(&json!({"uid": "new"})), "the extension is another one");
        assert!(!must(
            &json!({"uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"})
        ));
        let alone = revision(2, "x", None);
        assert!(
            must_be_noted(&alone, &extension(&json!({"uid": "u"}))),
            "others removed its owner"
        );
    }
}
