//! Deletions by a controller: objects of others, preconditions, and objects that must stay.

use olm_api::keys;
use serde_json::Value;

use super::writes::is_bookkeeping;
use super::{Found, Invariants};
use crate::object;
use crate::{Change, ObjectKey};

/// Checks a deletion by a controller.
pub(super) fn check(known: &mut Invariants, change: &Change, found: &mut Found) {
    let (Some(before), Some(preconditions)) = (&change.before, &change.deletion) else {
        return;
    };
    let key = &change.object;
    if !is_bookkeeping(key) && !object::is_ours(before) {
        found.add("nothing-foreign-deleted", format!("{key} of others was deleted"));
    }
    let read = (&preconditions.uid, &preconditions.resource_version);
    if !is_bookkeeping(key) && !matches!(read, (Some(_), Some(_))) {
        found.add(
            "guarded-deletion",
            format!("{key} was deleted without naming the uid and the resource version that were read"),
        );
    }
    newest_stays(known, key, found);
    if key.kind == "CustomResourceDefinition"
        && !told(known, before)
        && let Some(held) = custom_resource(known, before)
    {
        found.add(
            "crd-with-resources",
            format!("{key} was deleted while {held} exists"),
        );
    }
}

/// Checks `newest-stays`: the deleted object is in no newest succeeded revision of an extension that is not being deleted.
fn newest_stays(known: &mut Invariants, key: &ObjectKey, found: &mut Found) {
    let extensions: Vec<(String, String)> = known
        .of_kind("ClusterExtension")
        .filter(|(_, extension)| extension["metadata"]["deletionTimestamp"].is_null())
        .map(|(key, extension)| (key.name.clone(), object::uid(extension).to_owned()))
        .collect();
    for (name, uid) in extensions {
        let Some(revision) = known.newest_succeeded(&uid) else {
            continue;
        };
        if !known.given_up.contains(object::uid(&revision)) && known.contents_of(&revision).contains_key(key)
        {
            let revision = &revision["metadata"]["name"];
            found.add(
                "newest-stays",
                format!(
                    "{key} was deleted, although {revision} is the newest revision of ClusterExtension \"{name}\" that has succeeded"
                ),
            );
        }
    }
}

/// Returns true if the deletion of custom resources is allowed: by default, or by a revision that owns the CRD.
fn told(known: &Invariants, crd: &Value) -> bool {
    known.settings.deletes_custom_resources
        || known.of_kind("ClusterObjectSet").any(|(_, revision)| {
            let uid = object::uid(revision);
            object::owners(crd).any(|owner| owner["uid"] == uid)
                && object::annotation(revision, keys::CUSTOM_RESOURCES_ON_DELETE_ANNOTATION) == Some("Delete")
        })
}

/// Returns a custom resource of the CRD, if one exists.
fn custom_resource<'a>(known: &'a Invariants, crd: &Value) -> Option<&'a ObjectKey> {
    let (group, kind) = (&crd["spec"]["group"], &crd["spec"]["names"]["kind"]);
    known
        .objects
        .keys()
        .find(|key| *group == key.group.as_str() && *kind == key.kind.as_str())
}
