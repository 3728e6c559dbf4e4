//! Reports the kinds of a revision that are not watched, in the status and in events.

use kube::{Resource as _, ResourceExt as _};
use olm_api::event::Reason;
use olm_api::{ClusterObjectSet, ClusterObjectSetStatus};
use olm_applier::watch::{Watches, display_kind};
use olm_runtime::events::Events;
use olm_status::unwatched::{Unwatched, message};

use super::act::owner;

/// Most kinds that a message names.
const NAMED: usize = 5;

/// Returns the kinds of the revision whose watch fails; `None` if all are watched.
pub(super) fn of(watches: &Watches, set: &ClusterObjectSet) -> Option<Unwatched> {
    let failing = watches.failing(Some(&set.uid()?));
    let (_, first) = failing.first()?;
    let mut lines: Vec<String> = failing
        .iter()
        .take(NAMED)
        .map(|(kind, fault)| format!("{}: {fault}", display_kind(kind)))
        .collect();
    if failing.len() > NAMED {
        lines.push(format!("and {} more kinds", failing.len() - NAMED));
    }
    Some(Unwatched {
        reason: first.cause.as_str(),
        message: format!(
            "Objects of these kinds are not watched, but read on an interval until the watch is back:\n{}",
            lines.join("\n")
        ),
    })
}

/// Emits events on the revision and its extension if a watch fails or recovers.
pub(super) fn announce(
    events: &Events,
    set: &ClusterObjectSet,
    old: &ClusterObjectSetStatus,
    new: &ClusterObjectSetStatus,
) {
    let (before, now) = (message(old.conditions()), message(new.conditions()));
    for object in [Some(set.object_ref(&())), owner(set)].into_iter().flatten() {
        match (&before, &now) {
            (before, Some(now)) if before.as_ref().is_none_or(|before| before != now) => {
                events.warning(object, Reason::WatchFailing.as_str(), "Watch", now);
            }
            (Some(_), None) => {
                events.normal(
                    object,
                    Reason::WatchRestored.as_str(),
                    "Watch",
                    "all objects are watched again",
                );
            }
            _ => {}
        }
    }
}
