//! Writes by a controller: controllers among the owners, and objects of others.

use serde_json::Value;

use super::{Found, Invariants, is_event};
use crate::object::{self, GROUP};
use crate::{Change, ObjectKey};

/// Checks a write by a controller.
pub(super) fn check(known: &Invariants, change: &Change, found: &mut Found) {
    let key = &change.object;
    if let Some(after) = &change.after {
        let controllers = object::owners(after)
            .filter(|owner| owner["controller"] == true)
            .count();
        if controllers > 1 {
            found.add("one-controller", format!("{key} has {controllers} controllers"));
        }
    }
    let (Some(before), Some(after), None) = (&change.before, &change.after, &change.deletion) else {
        return;
    };
    if !is_bookkeeping(key) && !object::is_ours(before) && !may_adopt(known, after) {
        found.add("nothing-foreign-written", format!("{key} of others was changed"));
    }
}

/// Returns true for objects that controllers write for themselves, which need no label or owner of an extension.
pub(super) fn is_bookkeeping(key: &ObjectKey) -> bool {
    key.group == GROUP || is_event(key) || key.kind == "Lease" || key.kind == "ClusterOperator"
}

/// Returns true if the revision that now controls the object may adopt existing objects.
fn may_adopt(known: &Invariants, after: &Value) -> bool {
    let controller = object::owners(after).find(|owner| owner["controller"] == true);
    let Some(uid) = controller.and_then(|owner| owner["uid"].as_str()) else {
        return false;
    };
    known
        .of_kind("ClusterObjectSet")
        .filter(|(_, revision)| object::uid(revision) == uid)
        .any(|(_, revision)| {
            let spec = &revision["spec"];
            let phases = spec["phases"].as_array().into_iter().flatten();
            let objects = phases
                .clone()
                .flat_map(|phase| phase["objects"].as_array().into_iter().flatten());
            std::iter::once(spec).chain(phases).chain(objects).any(|level| {
                matches!(
                    level["collisionProtection"].as_str(),
                    Some("None" | "IfNoController")
                )
            })
        })
}
