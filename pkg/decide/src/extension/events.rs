//! Events that follow from a change of the status.

use olm_api::ClusterExtensionStatus;
use olm_api::condition::{
    Status, find, reasons::Extension as ConditionReason, types::Extension as ConditionType,
};
use olm_api::event::Reason;

/// Event that announces a change of the status.
#[derive(Debug, PartialEq, Eq)]
pub struct StatusEvent {
    /// True for the type `Warning`, false for `Normal`.
    pub warning: bool,
    /// Reason of the event.
    pub reason: Reason,
    /// Message of the event.
    pub note: String,
}

/// Returns the events for the change from `old` to `new`, none if nothing notable changed.
pub fn events(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus) -> Vec<StatusEvent> {
    let mut events = Vec::new();
    installation(old, new, &mut events);
    progress(old, new, &mut events);
    availability(old, new, &mut events);
    rollback(old, new, &mut events);
    upgrade(old, new, &mut events);
    support(old, new, &mut events);
    catalogs(old, new, &mut events);
    events
}

fn push(events: &mut Vec<StatusEvent>, warning: bool, reason: Reason, note: String) {
    events.push(StatusEvent {
        warning,
        reason,
        note,
    });
}

/// Status, reason and message of a condition.
type ConditionParts<'a> = (Status, &'a str, &'a str);

fn condition(status: &ClusterExtensionStatus, type_: ConditionType) -> Option<ConditionParts<'_>> {
    let found = find(status.conditions(), type_)?;
    Some((Status::read(&found.status), &found.reason, &found.message))
}

fn installation(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, events: &mut Vec<StatusEvent>) {
    let Some(now) = &new.install else { return };
    let Some(before) = &old.install else {
        let available = condition(new, ConditionType::Available).is_some_and(|(now, ..)| now == Status::True);
        let note = format!(
            "bundle {} with version {} is installed{}",
            now.bundle.name,
            now.bundle.version,
            if available { " and available" } else { "" }
        );
        return push(events, false, Reason::Installed, note);
    };
    if before.bundle != now.bundle {
        let note = format!(
            "changed from version {} to version {}",
            before.bundle.version, now.bundle.version
        );
        push(events, false, Reason::Upgraded, note);
    }
    if let (Some(from), Some(to)) = (&now.moved_from, &now.catalog)
        && before.catalog != now.catalog
    {
        let note = format!(
            "moved to catalog {to} because catalog {from} of the installed bundle was deleted, disabled or no longer selected"
        );
        push(events, true, Reason::CatalogMoved, note);
    }
}

fn progress(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, events: &mut Vec<StatusEvent>) {
    let now = condition(new, ConditionType::Progressing);
    let before = condition(old, ConditionType::Progressing);
    let Some((_, reason, message)) = now.filter(|now| before != Some(*now)) else {
        return;
    };
    if before.is_some_and(|(_, before, _)| *before == ConditionReason::Paused)
        && *reason != ConditionReason::Paused
    {
        push(
            events,
            false,
            Reason::Resumed,
            "the extension is no longer paused".to_owned(),
        );
    }
    // `Succeeded` is covered by the events of the installation.
    let events_by_reason = [
        (ConditionReason::RollingOut, false, Reason::RollingOut),
        (ConditionReason::Retrying, true, Reason::Retrying),
        (ConditionReason::Blocked, true, Reason::Blocked),
        (ConditionReason::AwaitingApproval, false, Reason::AwaitingApproval),
        (ConditionReason::AwaitingWindow, false, Reason::AwaitingWindow),
        (ConditionReason::HeldByOperator, false, Reason::HeldByOperator),
        (ConditionReason::Paused, false, Reason::Paused),
        (ConditionReason::Soaking, false, Reason::Soaking),
        (ConditionReason::SoakFailed, true, Reason::SoakFailed),
        (
            ConditionReason::InvalidConfiguration,
            true,
            Reason::InvalidConfiguration,
        ),
        (
            ConditionReason::ProgressDeadlineExceeded,
            true,
            Reason::ProgressDeadlineExceeded,
        ),
    ];
    // The events of its creation announce a new revision.
    if *reason == ConditionReason::RollingOut && has_new_revision(old, new) {
        return;
    }
    let found = events_by_reason
        .into_iter()
        .find(|(condition, ..)| *reason == *condition);
    if let Some((_, warning, reason)) = found {
        push(events, warning, reason, message.to_owned());
    }
}

/// Returns true if `new` has an active revision that `old` has not.
fn has_new_revision(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus) -> bool {
    let known = |name: &str| {
        old.active_revisions
            .iter()
            .flatten()
            .any(|revision| revision.name == name)
    };
    new.active_revisions
        .iter()
        .flatten()
        .any(|revision| !known(&revision.name))
}

fn availability(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, events: &mut Vec<StatusEvent>) {
    let Some((now, reason, message)) = condition(new, ConditionType::Available) else {
        return;
    };
    let before = condition(old, ConditionType::Available).map(|(status, ..)| status);
    match (before, now) {
        // The event of the installation says so.
        (_, Status::True) if old.install.is_none() && new.install.is_some() => {}
        (Some(Status::False | Status::Unknown) | None, Status::True) => {
            push(events, false, Reason::Available, message.to_owned());
        }
        // A revision that is being taken over has not been available yet.
        (None, Status::False) if *reason == ConditionReason::RollingOut => {}
        (Some(Status::True) | None, Status::False) => {
            push(events, true, Reason::Degraded, message.to_owned());
        }
        _ => {}
    }
}

/// Announces the end of a rollback; its beginning is announced with the write of its revision.
fn rollback(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, events: &mut Vec<StatusEvent>) {
    let of = |status| condition(status, ConditionType::RolledBack);
    if let (Some((_, reason, _)), None) = (of(old), of(new)) {
        let note = if *reason == ConditionReason::RolledBack {
            "the extension follows its source again, because its catalog, its image, the selected namespaces or the spec changed"
        } else {
            "the extension follows its source again, because spec.rollout.rollBackTo is gone or cannot be met"
        };
        push(events, false, Reason::RollBackEnded, note.to_owned());
    }
}

fn upgrade(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, events: &mut Vec<StatusEvent>) {
    let now = condition(new, ConditionType::UpgradeAvailable);
    // The progress announces an upgrade that waits.
    let waits = |reason: &str| {
        [
            ConditionReason::AwaitingApproval,
            ConditionReason::AwaitingWindow,
            ConditionReason::HeldByOperator,
            ConditionReason::RolledBack,
        ]
        .iter()
        .any(|waits| *reason == *waits)
    };
    if let Some((Status::True, reason, message)) = now
        && !waits(reason)
        && condition(old, ConditionType::UpgradeAvailable) != now
    {
        push(events, false, Reason::UpgradeAvailable, message.to_owned());
    }
}

/// Announces another reason of `EndOfSupport`, once. An extension that is supported from the beginning is no news.
fn support(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, events: &mut Vec<StatusEvent>) {
    let now = condition(new, ConditionType::EndOfSupport);
    let Some((_, reason, message)) = now else { return };
    let before = condition(old, ConditionType::EndOfSupport).map(|(_, reason, _)| reason);
    if before == Some(reason) {
        return;
    }
    let is = |reason: &str, other: ConditionReason| *reason == other;
    let was_near = before
        .is_some_and(|before| is(before, ConditionReason::EndingSoon) || is(before, ConditionReason::Ended));
    if is(reason, ConditionReason::Ended) {
        push(events, true, Reason::SupportEnded, message.to_owned());
    } else if is(reason, ConditionReason::EndingSoon) {
        push(events, true, Reason::SupportEndingSoon, message.to_owned());
    } else if is(reason, ConditionReason::Supported) && was_near {
        push(events, false, Reason::SupportRestored, message.to_owned());
    }
}

fn catalogs(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus, events: &mut Vec<StatusEvent>) {
    let of = |status| condition(status, ConditionType::CatalogsDegraded);
    match (of(old), of(new)) {
        (before, Some(now)) if before != Some(now) => {
            let reason = if *now.1 == ConditionReason::LeftOut {
                Reason::CatalogLeftOut
            } else {
                Reason::CatalogFormerContent
            };
            push(events, true, reason, now.2.to_owned());
        }
        (Some(_), None) => {
            let note = "the present content of all catalogs is read again".to_owned();
            push(events, false, Reason::CatalogsRecovered, note);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(
        version: Option<&str>,
        catalog: &str,
        conditions: &[(&str, &str, &str, &str)],
    ) -> ClusterExtensionStatus {
        let install = version.map(|version| {
            json!({"bundle": {"name": format!("a.v{version}"), "version": version}, "catalog": catalog,
                "movedFrom": (catalog == "new").then_some("old")})
        });
        let conditions: Vec<_> = conditions
            .iter()
            .map(|(type_, status, reason, message)| {
                json!({"type": type_, "status": status, "reason": reason, "message": message,
                    "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        serde_json::from_value(json!({"install": install, "conditions": conditions})).unwrap()
    }

    fn reasons(old: &ClusterExtensionStatus, new: &ClusterExtensionStatus) -> Vec<(bool, &'static str)> {
        events(old, new)
            .into_iter()
            .map(|event| (event.warning, event.reason.as_str()))
            .collect()
    }

    #[test]
    fn each_change_has_one_event() {
        let rolling = status(
            None,
            "",
            &[("Progressing", "True", "RollingOut", "1.0.0 is rolling out.")],
        );
        let done = ("Progressing", "True", "Succeeded", "done");
        let up = ("Available", "True", "ProbesSucceeded", "all pass");
        let down = ("Available", "False", "ProbeFailure", "one fails");
        let installed = status(Some("1.0.0"), "old", &[done, up]);
        let upgraded = status(Some("1.0.1"), "old", &[done, up]);
        let moved = status(Some("1.0.1"), "new", &[done, up]);
        let blocked = status(
            Some("1.0.1"),
            "new",
            &[("Progressing", "False", "Blocked", "no"), up],
        );
        let degraded = status(Some("1.0.0"), "old", &[done, down]);
        let held = status(
            Some("1.0.0"),
            "old",
            &[done, up, ("UpgradeAvailable", "True", "HeldByVersion", "1.1.0")],
        );
        let empty = ClusterExtensionStatus::default();
        let begun = ("Available", "False", "RollingOut", "1.0.0 is rolling out.");
        let taken_over = status(Some("1.0.0"), "old", &[done, begun]);
        assert_eq!(
            reasons(&empty, &taken_over),
            [(false, "Installed")],
            "no degradation"
        );
        assert_eq!(reasons(&taken_over, &installed), [(false, "Available")]);
        assert_eq!(reasons(&taken_over, &degraded), [], "it has not been available");
        assert_eq!(reasons(&empty, &rolling), [(false, "RollingOut")]);
        assert_eq!(
            reasons(&rolling, &installed),
            [(false, "Installed")],
            "one event says that it is available as well"
        );
        assert_eq!(reasons(&installed, &upgraded), [(false, "Upgraded")]);
        assert_eq!(reasons(&upgraded, &moved), [(true, "CatalogMoved")]);
        assert_eq!(reasons(&moved, &blocked), [(true, "Blocked")]);
        assert_eq!(reasons(&installed, &degraded), [(true, "Degraded")]);
        assert_eq!(reasons(&degraded, &installed), [(false, "Available")]);
        assert_eq!(reasons(&installed, &held), [(false, "UpgradeAvailable")]);
        let degraded_by = |reason| {
            status(
                Some("1.0.0"),
                "old",
                &[done, up, ("CatalogsDegraded", "True", reason, "c")],
            )
        };
        let (left_out, former) = (degraded_by("LeftOut"), degraded_by("FormerContent"));
        assert_eq!(reasons(&installed, &left_out), [(true, "CatalogLeftOut")]);
        assert_eq!(reasons(&left_out, &former), [(true, "CatalogFormerContent")]);
        assert_eq!(reasons(&former, &installed), [(false, "CatalogsRecovered")]);
        let waiting = |reason| {
            status(
                Some("1.0.0"),
                "old",
                &[
                    ("Progressing", "True", reason, "1.1.0 waits"),
                    up,
                    ("UpgradeAvailable", "True", reason, "1.1.0 waits"),
                ],
            )
        };
        assert_eq!(
            reasons(&installed, &waiting("AwaitingApproval")),
            [(false, "AwaitingApproval")]
        );
        assert_eq!(
            reasons(&installed, &waiting("AwaitingWindow")),
            [(false, "AwaitingWindow")]
        );
        let paused = status(
            Some("1.0.0"),
            "old",
            &[("Progressing", "False", "Paused", "p"), up],
        );
        let back = |reason| {
            status(
                Some("1.0.0"),
                "old",
                &[done, up, ("RolledBack", "True", reason, "b")],
            )
        };
        for reason in ["RolledBack", "RollBackRequested"] {
            assert_eq!(reasons(&installed, &back(reason)), []);
            assert_eq!(reasons(&back(reason), &installed), [(false, "RollBackEnded")]);
        }
        assert_eq!(reasons(&installed, &paused), [(false, "Paused")]);
        assert_eq!(reasons(&paused, &installed), [(false, "Resumed")]);
        assert_eq!(
            reasons(&paused, &rolling),
            [(false, "Resumed"), (false, "RollingOut")]
        );
        for same in [&paused, &rolling, &installed, &blocked, &degraded, &held, &former] {
            assert_eq!(reasons(same, same), []);
        }
    }

    #[test]
    fn an_extension_that_is_broken_from_the_start_is_degraded() {
        let broken = status(
            Some("1.0.0"),
            "old",
            &[("Available", "False", "ProbeFailure", "m")],
        );
        let empty = ClusterExtensionStatus::default();
        assert_eq!(
            reasons(&empty, &broken),
            [(false, "Installed"), (true, "Degraded")]
        );
    }

    #[test]
    fn the_end_of_a_rollback_has_its_cause() {
        let note = |reason| {
            let back = status(Some("1.0.0"), "old", &[("RolledBack", "True", reason, "b")]);
            let mut events = events(&back, &status(Some("1.0.0"), "old", &[]));
            events.swap_remove(0).note
        };
        assert!(note("RolledBack").contains("because its catalog"));
        assert!(note("RollBackRequested").contains("because spec.rollout.rollBackTo"));
    }

    #[test]
    fn the_event_of_an_installation_says_if_it_is_available() {
        let note = |available| {
            let new = status(Some("1.0.0"), "old", &[("Available", available, "r", "m")]);
            let mut events = events(&ClusterExtensionStatus::default(), &new);
            events.swap_remove(0).note
        };
        assert_eq!(note("False"), "bundle a.v1.0.0 with version 1.0.0 is installed");
        assert_eq!(
            note("True"),
            "bundle a.v1.0.0 with version 1.0.0 is installed and available"
        );
    }

    #[test]
    fn the_rollout_of_a_new_revision_has_no_event_of_its_own() {
        let rolling = status(None, "", &[("Progressing", "True", "RollingOut", "1.0.0")]);
        let mut created = rolling.clone();
        created.active_revisions = serde_json::from_value(json!([{"name": "a-1"}])).unwrap();
        let blocked = status(None, "", &[("Progressing", "False", "Blocked", "no")]);
        assert_eq!(reasons(&ClusterExtensionStatus::default(), &created), []);
        assert_eq!(reasons(&blocked, &rolling), [(false, "RollingOut")]);
    }

    #[test]
    fn each_reason_of_the_end_of_support_has_one_event() {
        let done = ("Progressing", "True", "Succeeded", "done");
        let installed = status(Some("1.0.0"), "old", &[done]);
        let support = |state, reason| {
            status(
                Some("1.0.0"),
                "old",
                &[done, ("EndOfSupport", state, reason, "day")],
            )
        };
        let (supported, near) = (support("False", "Supported"), support("False", "EndingSoon"));
        let (ended, unknown) = (support("True", "Ended"), support("Unknown", "SupportUnknown"));
        assert_eq!(reasons(&installed, &supported), []);
        assert_eq!(reasons(&installed, &near), [(true, "SupportEndingSoon")]);
        assert_eq!(reasons(&supported, &near), [(true, "SupportEndingSoon")]);
        assert_eq!(reasons(&near, &ended), [(true, "SupportEnded")]);
        assert_eq!(reasons(&ended, &supported), [(false, "SupportRestored")]);
        assert_eq!(reasons(&ended, &unknown), []);
        assert_eq!(reasons(&ended, &installed), []);
        assert_eq!(reasons(&ended, &ended), []);
    }

    #[test]
    fn a_known_revision_that_rolls_out_again_has_an_event() {
        let revisions = serde_json::from_value(json!([{"name": "a-1"}])).unwrap();
        let paused = ClusterExtensionStatus {
            active_revisions: Some(revisions),
            ..status(None, "", &[("Progressing", "False", "Paused", "p")])
        };
        let rolling = ClusterExtensionStatus {
            active_revisions: paused.active_revisions.clone(),
            ..status(None, "", &[("Progressing", "True", "RollingOut", "1.0.0")])
        };
        assert_eq!(
            reasons(&paused, &rolling),
            [(false, "Resumed"), (false, "RollingOut")]
        );
    }
}
