//! Rollouts: the order of phases, and the state of the objects when a revision succeeds.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Found, Invariants};
use crate::object::{self, GROUP};
use crate::{Actor, Change, ObjectKey};

/// Kinds that must be in an earlier phase than the first Deployment.
const NEEDED: [&str; 6] = [
    "CustomResourceDefinition",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
];

/// Checks a write of a revision or of one of its objects.
pub(super) fn check(known: &mut Invariants, change: &Change, found: &mut Found) {
    let Some(after) = &change.after else {
        return;
    };
    let key = &change.object;
    if (key.group.as_str(), key.kind.as_str()) == (GROUP, "ClusterObjectSet") {
        if change.before.is_none() {
            needed_first(known, key, after, found);
        }
        if matches!(change.actor, Actor::Controller(_)) && succeeded(after) {
            let before = change.before.as_deref();
            if before.is_some_and(|before| !succeeded(before)) {
                success_is_real(known, key, after, found);
                soak_is_over(key, after, found);
            }
        }
    } else if matches!(change.actor, Actor::Controller(_)) {
        phases_in_order(known, key, after, found);
    }
}

fn succeeded(revision: &Value) -> bool {
    object::condition(revision, "Succeeded").is_some_and(|condition| condition["status"] == "True")
}

/// Returns true if the condition is True for the present generation of the object.
fn holds(live: &Value, condition: &str) -> bool {
    let observed = live["status"]["observedGeneration"].as_i64();
    observed.is_none_or(|observed| Some(observed) == live["metadata"]["generation"].as_i64())
        && object::condition(live, condition).is_some_and(|condition| condition["status"] == "True")
}

/// Checks `needed-first` on the phases of a new revision.
fn needed_first(known: &mut Invariants, key: &ObjectKey, revision: &Value, found: &mut Found) {
    let contents = known.contents_of(revision);
    let first = contents.iter().filter(|(object, _)| object.kind == "Deployment");
    let Some(first) = first.map(|(_, phase)| *phase).min() else {
        return;
    };
    for (object, phase) in contents.iter() {
        if NEEDED.contains(&object.kind.as_str()) && *phase >= first {
            found.add(
                "needed-first",
                format!("{object} is in phase {phase} of {key}, and a Deployment is in phase {first}"),
            );
        }
    }
}

/// Checks `phases-in-order`: the first write of an object by its revision follows the writes of all objects of earlier phases.
fn phases_in_order(known: &mut Invariants, key: &ObjectKey, after: &Value, found: &mut Found) {
    let Some(revision) = known.revision_of(after) else {
        return;
    };
    let uid = object::uid(&revision).to_owned();
    if known
        .applied
        .get(&uid)
        .is_some_and(|applied| applied.contains(key))
    {
        return;
    }
    let contents = known.contents_of(&revision);
    let none = BTreeSet::new();
    if let Some(phase) = contents.get(key) {
        let applied = known.applied.get(&uid).unwrap_or(&none);
        for (earlier, _) in contents.iter().filter(|(_, earlier)| *earlier < phase) {
            let live = known.objects.get(earlier);
            let there =
                applied.contains(earlier) || live.is_some_and(|live| known.revision_of(live).is_some());
            let waits = earlier.kind == "CustomResourceDefinition"
                && live.is_some_and(|live| !holds(live, "Established"));
            if !there || waits {
                let name = &revision["metadata"]["name"];
                let why = if there {
                    "is not established"
                } else {
                    "was not applied"
                };
                found.add(
                    "phases-in-order",
                    format!("{key} was applied while {earlier}, of an earlier phase of {name}, {why}"),
                );
            }
        }
    }
    known.applied.entry(uid).or_default().insert(key.clone());
}

/// Checks `success-is-real`. Objects that others changed or deleted do not count, since the controller may not have seen that
/// yet.
fn success_is_real(known: &mut Invariants, key: &ObjectKey, revision: &Value, found: &mut Found) {
    let uid = object::uid(revision).to_owned();
    let contents = known.contents_of(revision);
    for object in contents.keys().filter(|object| !known.meddled.contains(object)) {
        let Some(live) = known.objects.get(object) else {
            found.add("success-is-real", format!("{key} succeeded without {object}"));
            continue;
        };
        let ours = object::owners(live).any(|owner| owner["uid"] == *uid && owner["controller"] == true);
        if ours && object.kind == "Deployment" && !holds(live, "Available") {
            found.add(
                "success-is-real",
                format!("{key} succeeded while {object} is not available"),
            );
        }
    }
}

/// Checks `soak-is-over`. Both times come from the status, so the clock of the run does not matter.
fn soak_is_over(key: &ObjectKey, revision: &Value, found: &mut Found) {
    let since = |kind: &str| {
        let time = object::condition(revision, kind)?["lastTransitionTime"].as_str()?;
        time.parse::<Timestamp>().ok()
    };
    let Some(text) = revision["spec"]["soak"].as_str() else {
        return;
    };
    let Ok(soak) = text.parse::<SignedDuration>() else {
        found.add(
            "soak-is-over",
            format!("{key} has a soak that is no duration: {text}"),
        );
        return;
    };
    if let (Some(available), Some(succeeded)) = (since("Available"), since("Succeeded"))
        && succeeded.duration_since(available) < soak
    {
        found.add(
            "soak-is-over",
            format!("{key} succeeded at {succeeded}, and it is available since {available} only"),
        );
    }
}
