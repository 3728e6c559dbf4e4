//! Rollouts: the order of phases, and what must be true when a revision succeeds.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Found, Invariants};
use crate::object::{self, GROUP};
use crate::{Actor, Change, ObjectKey};

/// Kinds that a workload needs before it starts.
const NEEDED: [&str; 6] = [
    "CustomResourceDefinition",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
];

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

/// Returns true if the condition of the object is true for its generation.
fn holds(live: &Value, condition: &str) -> bool {
    let observed = live["status"]["observedGeneration"].as_i64();
    observed.is_none_or(|observed| Some(observed) == live["metadata"]["generation"].as_i64())
        && object::condition(live, condition).is_some_and(|condition| condition["status"] == "True")
}

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

/// The first write of an object by its revision comes after those of all objects of earlier phases.
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

/// Both times are in the status, so the clock of the run does not matter.
fn soak_is_over(key: &ObjectKey, revision: &Value, found: &mut Found) {
    let since = |kind: &str| {
        let time = object::condition(revision, kind)?["lastTransitionTime"].as_str()?;
        time.parse::<Timestamp>().ok()
    };
    let minutes = revision["spec"]["soak"]
        .as_str()
        .and_then(|soak| soak.strip_suffix('m'));
    let minutes = minutes.and_then(|minutes| minutes.parse().ok());
    if let (Some(minutes), Some(available), Some(succeeded)) =
        (minutes, since("Available"), since("Succeeded"))
        && succeeded.duration_since(available) < SignedDuration::from_mins(minutes)
    {
        found.add(
            "soak-is-over",
            format!("{key} succeeded at {succeeded}, and it is available since {available} only"),
        );
    }
}
