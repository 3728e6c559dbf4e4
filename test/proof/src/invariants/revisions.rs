//! Revisions: their numbers, versions and lifecycle states.

use olm_api::keys;
use semver::Version;
use serde_json::Value;

use super::{Found, Invariants};
use crate::object::{self, GROUP};
use crate::{Actor, Change};

/// Checks a change of a revision, and records its number and its lifecycle state.
pub(super) fn check(known: &mut Invariants, change: &Change, found: &mut Found) {
    if (change.object.group.as_str(), change.object.kind.as_str()) != (GROUP, "ClusterObjectSet") {
        return;
    }
    let Some(after) = &change.after else {
        return;
    };
    let key = &change.object;
    let uid = object::uid(after).to_owned();
    let is_marked = |revision: &Value| revision["metadata"]["deletionTimestamp"].is_string();
    let by_others = !matches!(change.actor, Actor::Controller(_));
    if by_others && is_marked(after) && change.before.as_deref().is_some_and(|before| !is_marked(before)) {
        known.given_up.insert(uid.clone());
    }
    if after["spec"]["lifecycleState"] == "Archived" {
        known.archived.insert(uid);
    } else if known.archived.contains(&uid) {
        found.add(
            "archived-stays",
            format!("{key} was archived and is active again"),
        );
    }
    let (None, Some(extension)) = (&change.before, object::extension_uid(after)) else {
        return;
    };
    let extension = extension.to_owned();
    let number = after["spec"]["revision"].as_i64().unwrap_or_default();
    // The garbage collector removes a revision that was created during or after the deletion of its extension, so its number does
    // not matter.
    let stays = known
        .of_kind("ClusterExtension")
        .any(|(_, owner)| object::uid(owner) == extension && !is_marked(owner));
    let highest = known.numbers.entry(extension.clone()).or_default();
    if number <= *highest && stays {
        found.add(
            "numbers-grow",
            format!("{key} has the number {number}, and {highest} was there before"),
        );
    }
    *highest = number.max(*highest);
    if matches!(change.actor, Actor::Controller(_)) {
        no_downgrade(known, change, after, &extension, found);
    }
}

/// Checks `no-downgrade` for a new revision of the extension with the uid `extension`.
fn no_downgrade(known: &Invariants, change: &Change, created: &Value, extension: &str, found: &mut Found) {
    if object::annotation(created, keys::ROLLBACK_ANNOTATION).is_some() {
        return;
    }
    let free = known
        .of_kind("ClusterExtension")
        .filter(|(_, candidate)| object::uid(candidate) == extension)
        .any(|(_, extension)| {
            extension["spec"]["source"]["catalog"]["upgradeConstraintPolicy"] == "SelfCertified"
        });
    let Some(installed) = known.newest_succeeded(extension).filter(|_| !free) else {
        return;
    };
    if let (Some(new), Some(old)) = (version(created), version(&installed))
        && new < old
    {
        let key = &change.object;
        found.add(
            "no-downgrade",
            format!("{key} has version {new}, and {old} is installed"),
        );
    }
}

/// Returns the version of a revision's bundle.
fn version(revision: &Value) -> Option<Version> {
    object::annotation(revision, keys::BUNDLE_VERSION_ANNOTATION)?
        .parse()
        .ok()
}
