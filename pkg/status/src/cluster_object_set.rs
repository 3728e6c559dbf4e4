//! The status of a ClusterObjectSet, from what one reconcile found.
//!
//! Invariants: `Succeeded` is latched; `observedPhases` is written once; a condition that still says the same keeps its transition time.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use olm_api::{ClusterObjectSetStatus, ObservedPhase};

use crate::condition::{self, NewCondition};
use crate::summary::{self, State, Summary, find};
use crate::unwatched::{self, Unwatched};

/// What one reconcile came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything is applied and ready.
    RolledOut,
    /// A phase is not ready; a line for its first object that is not.
    NotReady(Vec<String>),
    /// A newer revision is taking over.
    HandingOver,
    /// Something is in the way; it is tried again.
    Retrying(String),
    /// Only a change of the revision or of what it refers to helps.
    Blocked(String),
    /// Objects are being removed; the text says what is waited for.
    Removing(String),
    /// The revision is archived and nothing of it is left.
    Archived,
}

/// The rest of what the status depends on.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Version of the bundle the revision brings.
    pub version: &'a str,
    /// The deadline in minutes, when it has passed.
    pub overdue: Option<i32>,
    /// Digests of the phases, where they could be computed.
    pub observed_phases: Option<Vec<ObservedPhase>>,
    /// Kinds of the revision whose watch fails.
    pub unwatched: Option<Unwatched>,
    /// Generation the outcome is of.
    pub generation: i64,
}

/// The new status, given the old one.
#[must_use]
pub fn object_set(
    old: &ClusterObjectSetStatus,
    outcome: &Outcome,
    facts: &Facts<'_>,
    now: &Time,
) -> ClusterObjectSetStatus {
    let mut conditions = old.conditions.clone().unwrap_or_default();
    let had = |type_: &str| old.conditions.iter().flatten().any(|c| c.type_ == type_);
    let mut put = |type_: &str, status: &str, reason: &str, message: &str| {
        let new = NewCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: facts.generation,
        };
        condition::set(&mut conditions, new, now);
    };
    let rolling = format!("Revision {} is rolling out.", facts.version);
    let mut progressing = |status: &str, reason: &str, message: &str, final_word: bool| match facts.overdue {
        Some(minutes) if !final_word => {
            let text = format!("Revision has not rolled out for {minutes} minute(s). Last status: {message}");
            put("Progressing", "False", "ProgressDeadlineExceeded", &text);
        }
        _ => put("Progressing", status, reason, message),
    };
    match outcome {
        Outcome::RolledOut => {
            let done = format!("Revision {} has rolled out.", facts.version);
            progressing("True", "Succeeded", &done, true);
            put(
                "Available",
                "True",
                "ProbesSucceeded",
                "Objects are available and pass all probes.",
            );
            if !old
                .conditions
                .iter()
                .flatten()
                .any(|c| c.type_ == "Succeeded" && c.status == "True")
            {
                put(
                    "Succeeded",
                    "True",
                    "Succeeded",
                    "Revision succeeded rolling out.",
                );
            }
        }
        Outcome::NotReady(lines) => {
            progressing("True", "RollingOut", &rolling, false);
            put("Available", "False", "ProbeFailure", &lines.join("\n"));
        }
        Outcome::HandingOver => {
            progressing("True", "RollingOut", &rolling, false);
            if !had("Available") {
                put("Available", "False", "RollingOut", &rolling);
            }
        }
        Outcome::Retrying(message) => {
            progressing("True", "Retrying", message, false);
            if had("Available") {
                put("Available", "Unknown", "Reconciling", message);
            }
        }
        Outcome::Removing(message) => progressing("True", "Retrying", message, true),
        Outcome::Blocked(message) => progressing("False", "Blocked", message, true),
        Outcome::Archived => {
            progressing("False", "Archived", "revision is archived", true);
            put("Available", "Unknown", "Archived", "revision is archived");
        }
    }
    let observed_phases = match &old.observed_phases {
        Some(phases) if !phases.is_empty() => Some(phases.clone()),
        _ => facts.observed_phases.clone(),
    };
    let unwatched = facts.unwatched.as_ref().filter(|_| *outcome != Outcome::Archived);
    unwatched::put(&mut conditions, unwatched, facts.generation, now);
    let told = summarise(&conditions, outcome);
    summary::put(&mut conditions, told.as_ref(), facts.generation, now);
    ClusterObjectSetStatus {
        observed_generation: Some(facts.generation),
        conditions: Some(conditions),
        observed_phases,
    }
}

/// What tools read; an archived revision has nothing to tell them.
fn summarise(conditions: &[Condition], outcome: &Outcome) -> Option<Summary> {
    if *outcome == Outcome::Archived {
        return None;
    }
    let progressing = find(conditions, "Progressing")?;
    let state = match (progressing.status.as_str(), outcome) {
        ("False", _) => State::Stalled,
        (_, Outcome::RolledOut) => State::Ready,
        // It did roll out once: what is missing now is being waited for, not made.
        (_, Outcome::NotReady(_)) if find(conditions, "Succeeded").is_some_and(|c| c.status == "True") => {
            let available = find(conditions, "Available").unwrap_or(progressing);
            return Some(Summary::of(State::Impaired, available));
        }
        _ => State::Working,
    };
    Some(Summary::of(state, progressing))
}

/// Whether writing `new` over `old` would tell a reader anything; transition times alone do not.
#[must_use]
pub fn same(old: &ClusterObjectSetStatus, new: &ClusterObjectSetStatus) -> bool {
    let (a, b) = (
        old.conditions.as_deref().unwrap_or_default(),
        new.conditions.as_deref().unwrap_or_default(),
    );
    old.observed_phases == new.observed_phases
        && old.observed_generation == new.observed_generation
        && a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| condition::same_ignoring_time(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Time {
        serde_json::from_str("\"2026-01-01T00:00:00Z\"").unwrap()
    }

    fn run(
        old: &ClusterObjectSetStatus,
        outcome: &Outcome,
        overdue: Option<i32>,
    ) -> (ClusterObjectSetStatus, String) {
        let facts = Facts {
            version: "1.2.3",
            overdue,
            observed_phases: None,
            unwatched: None,
            generation: 4,
        };
        let new = object_set(old, outcome, &facts, &now());
        let text = new.conditions.iter().flatten();
        let text: Vec<String> = text
            .filter(|c| !["Ready", "Reconciling", "Stalled"].contains(&c.type_.as_str()))
            .map(|c| format!("{} {} {} {}", c.type_, c.status, c.reason, c.message))
            .collect();
        (new, text.join(" | "))
    }

    #[test]
    fn success_is_latched() {
        let empty = ClusterObjectSetStatus::default();
        let (done, text) = run(&empty, &Outcome::RolledOut, None);
        assert!(
            text.contains("Progressing True Succeeded Revision 1.2.3 has rolled out."),
            "{text}"
        );
        assert!(
            text.contains("Succeeded True Succeeded Revision succeeded rolling out."),
            "{text}"
        );
        let (_, text) = run(&done, &Outcome::NotReady(vec!["Object A: x".to_owned()]), None);
        assert!(
            text.contains("Available False ProbeFailure Object A: x"),
            "{text}"
        );
        assert!(
            text.contains("Succeeded True Succeeded Revision succeeded rolling out."),
            "{text}"
        );
    }

    #[test]
    fn errors_speak_of_availability_only_when_it_was_known() {
        let empty = ClusterObjectSetStatus::default();
        let (_, text) = run(&empty, &Outcome::Retrying("why".to_owned()), None);
        assert_eq!(text, "Progressing True Retrying why");
        let (_, text) = run(&empty, &Outcome::Retrying("why".to_owned()), Some(10));
        assert_eq!(
            text,
            "Progressing False ProgressDeadlineExceeded Revision has not rolled out for 10 minute(s). Last status: why"
        );
        let (_, text) = run(&empty, &Outcome::Blocked("b".to_owned()), Some(10));
        assert_eq!(text, "Progressing False Blocked b");
    }

    #[test]
    fn tools_see_how_far_it_is() {
        let ready = |status: &ClusterObjectSetStatus| {
            let shown = ["Ready", "Reconciling", "Stalled"].map(|type_| {
                let found = find(status.conditions.as_deref().unwrap_or_default(), type_);
                found.map_or("-", |c| c.status.as_str()).to_owned()
            });
            assert_eq!(status.observed_generation, Some(4));
            shown.join(" ")
        };
        let empty = ClusterObjectSetStatus::default();
        let waiting = Outcome::NotReady(vec!["Object A: x".to_owned()]);
        assert_eq!(ready(&run(&empty, &waiting, None).0), "False True -");
        assert_eq!(ready(&run(&empty, &waiting, Some(10)).0), "False - True");
        let (done, _) = run(&empty, &Outcome::RolledOut, None);
        assert_eq!(ready(&done), "True - -");
        assert_eq!(ready(&run(&done, &waiting, None).0), "False - -");
        assert_eq!(
            ready(&run(&done, &Outcome::Retrying("x".to_owned()), None).0),
            "False True -"
        );
        assert_eq!(ready(&run(&done, &Outcome::Archived, None).0), "- - -");
    }

    #[test]
    fn a_failing_watch_is_told_while_it_fails() {
        let watched = |old: &ClusterObjectSetStatus, unwatched: Option<Unwatched>| {
            let facts = Facts {
                version: "1.2.3",
                overdue: None,
                observed_phases: None,
                unwatched,
                generation: 4,
            };
            object_set(old, &Outcome::RolledOut, &facts, &now())
        };
        let fault = Unwatched {
            reason: "Forbidden",
            message: "ConfigMap.v1: no".to_owned(),
        };
        let failing = watched(&ClusterObjectSetStatus::default(), Some(fault.clone()));
        let conditions = failing.conditions.as_deref();
        assert_eq!(unwatched::told(conditions), Some("ConfigMap.v1: no"));
        let ready = find(conditions.unwrap(), "Ready").unwrap();
        assert_eq!(ready.status, "True", "the objects are still read");
        assert!(same(&failing, &watched(&failing, Some(fault))));
        let back = watched(&failing, None);
        assert!(!same(&failing, &back));
        assert_eq!(unwatched::told(back.conditions.as_deref()), None);
    }

    #[test]
    fn times_alone_are_no_difference() {
        let (one, _) = run(&ClusterObjectSetStatus::default(), &Outcome::RolledOut, None);
        let later: Time = serde_json::from_str("\"2027-01-01T00:00:00Z\"").unwrap();
        let facts = Facts {
            version: "1.2.3",
            overdue: None,
            observed_phases: None,
            unwatched: None,
            generation: 4,
        };
        assert!(same(&one, &object_set(&one, &Outcome::RolledOut, &facts, &later)));
    }
}
