//! Removals: the order of a teardown, foreign finalizers, and the end of an extension after that of its revisions.

use serde_json::Value;

use super::{Found, Invariants};
use crate::object::{self, GROUP};
use crate::{Actor, Change, ObjectKey};

/// Checks a change, and records the objects of a revision that starts to leave.
pub(super) fn check(known: &mut Invariants, change: &Change, found: &mut Found) {
    let key = &change.object;
    if matches!(change.actor, Actor::Controller(_)) {
        if let Some(before) = &change.before {
            others_finalizers(key, before, change.after.as_deref(), found);
            if change.deletion.is_some() {
                teardown_order(known, key, before, found);
            }
        }
        if let (Some(before), None, None) = (&change.before, &change.after, &change.deletion) {
            extension_last(known, key, before, found);
        }
    }
    if let Some(after) = &change.after
        && is_revision(key)
        && leaves(after)
        && change.before.as_deref().is_none_or(|before| !leaves(before))
    {
        let uid = object::uid(after);
        let held = known.objects.iter().filter(|(_, live)| controls(uid, live));
        let held = held.map(|(key, _)| key.clone()).collect();
        known.leaving.insert(uid.to_owned(), held);
    }
    if change.after.is_none() {
        for held in known.leaving.values_mut() {
            held.remove(key);
        }
    }
}

fn is_revision(key: &ObjectKey) -> bool {
    (key.group.as_str(), key.kind.as_str()) == (GROUP, "ClusterObjectSet")
}

/// Returns true if the revision leaves: it is archived or being deleted, so it gives its objects up.
fn leaves(revision: &Value) -> bool {
    revision["spec"]["lifecycleState"] == "Archived" || revision["metadata"]["deletionTimestamp"].is_string()
}

/// Returns true if the owner with this uid controls the object.
fn controls(uid: &str, live: &Value) -> bool {
    object::owners(live).any(|owner| owner["uid"] == uid && owner["controller"] == true)
}

/// Checks `finalizers-of-others`: a controller removes only finalizers of OLM.
fn others_finalizers(key: &ObjectKey, before: &Value, after: Option<&Value>, found: &mut Found) {
    let list = |object: &Value| -> Vec<String> {
        let all = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        all.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let left = after.map(list).unwrap_or_default();
    for finalizer in list(before) {
        if !left.contains(&finalizer) && !finalizer.starts_with(GROUP) {
            found.add(
                "finalizers-of-others",
                format!("finalizer {finalizer} of {key} was removed"),
            );
        }
    }
}

/// Checks `teardown-in-order`: a leaving revision deletes its objects in the reverse order of its phases. Only objects that it
/// had when it started to leave count; an object that a late write creates again may go at any time, also if another revision had
/// deleted it.
fn teardown_order(known: &mut Invariants, key: &ObjectKey, before: &Value, found: &mut Found) {
    let Some(revision) = known.revision_of(before) else {
        return;
    };
    let uid = object::uid(&revision);
    let contents = known.contents_of(&revision);
    let (Some(leaving), Some(phase)) = (known.leaving.get(uid), contents.get(key)) else {
        return;
    };
    for later in leaving {
        let live = known.objects.get(later);
        let there = live
            .is_some_and(|live| controls(uid, live) && !live["metadata"]["deletionTimestamp"].is_string());
        if there && contents.get(later) > Some(phase) {
            let name = &revision["metadata"]["name"];
            found.add(
                "teardown-in-order",
                format!("{key} was deleted while {later}, of a later phase of {name}, exists"),
            );
        }
    }
}

/// Checks `extension-last`: an extension goes only after the revisions that existed when its deletion was requested. Orphaning
/// deletion is exempt, because it keeps the revisions.
fn extension_last(known: &Invariants, key: &ObjectKey, before: &Value, found: &mut Found) {
    let orphans = before["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|all| all.iter().any(|name| name == "orphan"));
    if (key.group.as_str(), key.kind.as_str()) != (GROUP, "ClusterExtension") || orphans {
        return;
    }
    let since = before["metadata"]["deletionTimestamp"].as_str();
    for (left, revision) in known.of_kind("ClusterObjectSet") {
        if object::extension_uid(revision) == Some(object::uid(before))
            && revision["metadata"]["creationTimestamp"].as_str() < since
        {
            found.add("extension-last", format!("{key} is gone, and its {left} exists"));
        }
    }
}
