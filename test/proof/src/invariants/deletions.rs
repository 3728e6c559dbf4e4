//! Deletions by a controller: objects of others, preconditions, and objects that must stay.

use std::sync::Arc;

use olm_api::keys;
use serde_json::Value;

use super::writes::is_bookkeeping;
use super::{Found, Invariants};
use crate::object::{self, GROUP};
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
    block_holds(known, key, found);
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

/// Records if a deletion of an extension waits for its custom resources, by its policy when the deletion was requested and since.
pub(super) fn note_block(known: &mut Invariants, change: &Change) {
    let Some(after) = change.after.as_ref().filter(|_| is_extension(&change.object)) else {
        return;
    };
    let is_marked = |extension: &Value| extension["metadata"]["deletionTimestamp"].is_string();
    if after["spec"]["deletion"]["customResources"] != "Block" {
        known.blocked.remove(object::uid(after));
    } else if is_marked(after) && change.before.as_deref().is_none_or(|before| !is_marked(before)) {
        known.blocked.insert(object::uid(after).to_owned());
    }
}

fn is_extension(key: &ObjectKey) -> bool {
    (key.group.as_str(), key.kind.as_str()) == (GROUP, "ClusterExtension")
}

/// Checks `block-holds`: the deleted object is in no newest succeeded revision of an extension whose deletion waits for custom
/// resources.
fn block_holds(known: &mut Invariants, key: &ObjectKey, found: &mut Found) {
    let waiting: Vec<(String, Value)> = known
        .of_kind("ClusterExtension")
        .filter(|(_, extension)| known.blocked.contains(object::uid(extension)))
        .map(|(key, extension)| (key.name.clone(), extension["metadata"].clone()))
        .collect();
    for (name, metadata) in waiting {
        let uid = metadata["uid"].as_str().unwrap_or_default();
        let Some(newest) = known.newest_succeeded(uid) else {
            continue;
        };
        let given_up = known.given_up.contains(object::uid(&newest));
        if given_up || !known.contents_of(&newest).contains_key(key) {
            continue;
        }
        if let Some(held) = custom_resource_of(known, uid, &metadata["deletionTimestamp"]) {
            found.add(
                "block-holds",
                format!(
                    "{key} of {} was deleted, although {held} exists and ClusterExtension \"{name}\" has the policy Block",
                    newest["metadata"]["name"]
                ),
            );
        }
    }
}

/// Returns a custom resource that has existed since before the time `since` and whose CRD is controlled by the extension with this
/// uid or a revision of it. A later one may come between the count of the controllers and their deletions.
///
/// Custom resources of kinds of which the extension itself has some do not count: they are deleted in their phase, before their CRD.
fn custom_resource_of(known: &mut Invariants, extension: &str, since: &Value) -> Option<ObjectKey> {
    let of_extension = |revision: &&Arc<Value>| object::extension_uid(revision) == Some(extension);
    let revisions = known.of_kind("ClusterObjectSet").map(|(_, revision)| revision);
    let revisions: Vec<Arc<Value>> = revisions.filter(of_extension).cloned().collect();
    let own: Vec<_> = revisions
        .iter()
        .map(|revision| known.contents_of(revision))
        .collect();
    // Before a takeover from Helm, the extension itself controls the CRDs.
    let controls = |owner: &Value| {
        let is_revision = |revision: &Arc<Value>| owner["uid"] == object::uid(revision);
        owner["controller"] == true && (owner["uid"] == extension || revisions.iter().any(is_revision))
    };
    let crds: Vec<&Arc<Value>> = known
        .objects
        .iter()
        .filter(|(key, crd)| {
            key.kind == "CustomResourceDefinition"
                && crd["metadata"]["deletionTimestamp"].is_null()
                && object::owners(crd).any(controls)
        })
        .map(|(_, crd)| crd)
        .collect();
    let is_older = |object: &Value| object["metadata"]["creationTimestamp"].as_str() < since.as_str();
    let mut held = known
        .objects
        .iter()
        .filter(|(key, object)| is_older(object) && crds.iter().any(|crd| is_of(key, crd)))
        .map(|(key, _)| key);
    held.find(|held| {
        let alike = |key: &ObjectKey| (&key.group, &key.kind) == (&held.group, &held.kind);
        !own.iter().any(|contents| contents.keys().any(alike))
    })
    .cloned()
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
    known.objects.keys().find(|key| is_of(key, crd))
}

/// Returns true if the object with this identity is a custom resource of the CRD.
fn is_of(key: &ObjectKey, crd: &Value) -> bool {
    let (group, kind) = (&crd["spec"]["group"], &crd["spec"]["names"]["kind"]);
    *group == key.group.as_str() && *kind == key.kind.as_str()
}
