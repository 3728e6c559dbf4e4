//! Status of a ClusterObjectSet, computed from the outcome of one reconcile.
//!
//! Invariants: `Succeeded` is latched; `observedPhases` is written once; a condition whose status is unchanged keeps
//! its transition time.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use olm_api::condition::{Status, find, is_true, reasons::ObjectSet as Reason, types::ObjectSet as Type};
use olm_api::{ClusterObjectSetStatus, ObservedPhase};
use olm_version::BundleVersion;

use crate::condition::{self, NewCondition};
use crate::summary::{self, State, Summary};
use crate::unwatched::{self, Unwatched};

/// Outcome of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every object is applied and ready.
    RolledOut,
    /// The objects of a phase are applied, and some are not ready.
    NotReady {
        /// One line per object that is not ready.
        lines: Vec<String>,
        /// Reason that the pods of a workload give, as one sentence.
        reason: Option<String>,
    },
    /// A newer revision takes over the objects of this one.
    HandingOver,
    /// A transient error; the controller retries.
    Retrying(String),
    /// A terminal error until the revision or an object that it refers to changes.
    Blocked(String),
    /// Objects are being removed; the text names the remaining ones.
    Removing(String),
    /// The revision is archived, and its objects are removed.
    Archived,
}

/// Further inputs of the status.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Version of the bundle the revision brings.
    pub version: &'a BundleVersion,
    /// Progress deadline in minutes, if it has passed.
    pub overdue: Option<i32>,
    /// Digests of the phases, if they could be computed.
    pub observed_phases: Option<Vec<ObservedPhase>>,
    /// Kinds of the revision whose watch fails.
    pub unwatched: Option<Unwatched>,
    /// Generation that the outcome belongs to.
    pub generation: i64,
}

/// Returns the new status, given the old one.
#[must_use]
pub fn object_set(
    old: &ClusterObjectSetStatus,
    outcome: &Outcome,
    facts: &Facts<'_>,
    now: &Time,
) -> ClusterObjectSetStatus {
    let mut conditions = old.conditions.clone().unwrap_or_default();
    let old_conditions = old.conditions();
    let had_available = find(old_conditions, Type::Available).is_some();
    let mut put = |type_: Type, status: Status, reason: Reason, message: &str| {
        let new = NewCondition {
            type_: type_.into(),
            status,
            reason: reason.into(),
            message: message.to_owned(),
            observed_generation: facts.generation,
        };
        condition::set(&mut conditions, new, now);
    };
    let rolling = format!("Revision {} is rolling out.", facts.version);
    let mut progressing = |status: Status, reason: Reason, message: &str, terminal: bool| match facts.overdue
    {
        Some(minutes) if !terminal => {
            let text = format!("Revision has not rolled out for {minutes} minute(s). Last status: {message}");
            put(
                Type::Progressing,
                Status::False,
                Reason::ProgressDeadlineExceeded,
                &text,
            );
        }
        _ => put(Type::Progressing, status, reason, message),
    };
    match outcome {
        Outcome::RolledOut => {
            let done = format!("Revision {} has rolled out.", facts.version);
            progressing(Status::True, Reason::Succeeded, &done, true);
            put(
                Type::Available,
                Status::True,
                Reason::ProbesSucceeded,
                "Objects are available and pass all probes.",
            );
            if !is_true(old_conditions, Type::Succeeded) {
                put(
                    Type::Succeeded,
                    Status::True,
                    Reason::Succeeded,
                    "Revision succeeded rolling out.",
                );
            }
        }
        Outcome::NotReady { lines, reason } => {
            let join = |text: &str, with: &str| match reason {
                Some(reason) => format!("{text}{with}{reason}"),
                None => text.to_owned(),
            };
            let (rolling, lines) = (join(&rolling, " "), join(&lines.join("\n"), "\n"));
            progressing(Status::True, Reason::RollingOut, &rolling, false);
            put(Type::Available, Status::False, Reason::ProbeFailure, &lines);
        }
        Outcome::HandingOver => {
            progressing(Status::True, Reason::RollingOut, &rolling, false);
            if !had_available {
                put(Type::Available, Status::False, Reason::RollingOut, &rolling);
            }
        }
        Outcome::Retrying(message) => {
            progressing(Status::True, Reason::Retrying, message, false);
            if had_available {
                put(Type::Available, Status::Unknown, Reason::Reconciling, message);
            }
        }
        Outcome::Removing(message) => progressing(Status::True, Reason::Retrying, message, true),
        Outcome::Blocked(message) => progressing(Status::False, Reason::Blocked, message, true),
        Outcome::Archived => {
            progressing(Status::False, Reason::Archived, "revision is archived", true);
            put(
                Type::Available,
                Status::Unknown,
                Reason::Archived,
                "revision is archived",
            );
        }
    }
    let observed_phases = match &old.observed_phases {
        Some(phases) if !phases.is_empty() => Some(phases.clone()),
        _ => facts.observed_phases.clone(),
    };
    let unwatched = facts.unwatched.as_ref().filter(|_| *outcome != Outcome::Archived);
    unwatched::put(&mut conditions, unwatched, facts.generation, now);
    let summary = summarise(&conditions, outcome);
    summary::put(&mut conditions, summary.as_ref(), facts.generation, now);
    ClusterObjectSetStatus {
        observed_generation: Some(facts.generation),
        conditions: Some(conditions),
        observed_phases,
    }
}

/// Returns the summary for generic tools; none for an archived revision.
fn summarise(conditions: &[Condition], outcome: &Outcome) -> Option<Summary> {
    if *outcome == Outcome::Archived {
        return None;
    }
    let progressing = find(conditions, Type::Progressing)?;
    let state = match (Status::read(&progressing.status), outcome) {
        (Status::False, _) => State::Stalled,
        (_, Outcome::RolledOut) => State::Ready,
        // The revision rolled out before: its objects exist and are not ready.
        (_, Outcome::NotReady { .. }) if is_true(conditions, Type::Succeeded) => {
            let available = find(conditions, Type::Available).unwrap_or(progressing);
            return Some(Summary::of(State::Unavailable, available));
        }
        _ => State::Reconciling,
    };
    Some(Summary::of(state, progressing))
}

/// Returns true if the statuses differ in nothing but transition times.
#[must_use]
pub fn same(old: &ClusterObjectSetStatus, new: &ClusterObjectSetStatus) -> bool {
    let (a, b) = (old.conditions(), new.conditions());
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

    fn not_ready(reason: Option<&str>) -> Outcome {
        Outcome::NotReady {
            lines: vec!["Object A: x".to_owned()],
            reason: reason.map(ToOwned::to_owned),
        }
    }

    fn run(
        old: &ClusterObjectSetStatus,
        outcome: &Outcome,
        overdue: Option<i32>,
    ) -> (ClusterObjectSetStatus, String) {
        let facts = Facts {
            version: &"1.2.3".into(),
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
        let (_, text) = run(&done, &not_ready(None), None);
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
    fn the_reason_of_the_pods_follows_the_own_sentence() {
        let empty = ClusterObjectSetStatus::default();
        let stuck = not_ready(Some("Deployment n/d is not available: pod p."));
        let (rolling, text) = run(&empty, &stuck, None);
        assert_eq!(
            text,
            "Progressing True RollingOut Revision 1.2.3 is rolling out. Deployment n/d is not available: pod p. | \
             Available False ProbeFailure Object A: x\nDeployment n/d is not available: pod p."
        );
        let ready =
            |status: &ClusterObjectSetStatus| find(status.conditions(), "Ready").unwrap().message.clone();
        assert_eq!(
            ready(&rolling),
            "Revision 1.2.3 is rolling out. Deployment n/d is not available: pod p."
        );
        let (_, text) = run(&empty, &stuck, Some(10));
        let late = "Progressing False ProgressDeadlineExceeded Revision has not rolled out for 10 minute(s). Last status: \
                    Revision 1.2.3 is rolling out. Deployment n/d is not available: pod p.";
        assert!(text.starts_with(late), "{text}");
        let (done, _) = run(&empty, &Outcome::RolledOut, None);
        let (down, _) = run(&done, &stuck, None);
        assert_eq!(
            ready(&down),
            "Object A: x\nDeployment n/d is not available: pod p.",
            "Available decides after the rollout"
        );
    }

    #[test]
    fn errors_set_available_only_if_it_was_set_before() {
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
    fn summary_of_each_outcome() {
        let ready = |status: &ClusterObjectSetStatus| {
            let shown = ["Ready", "Reconciling", "Stalled"].map(|type_| {
                let found = find(status.conditions(), type_);
                found.map_or("-", |c| c.status.as_str()).to_owned()
            });
            assert_eq!(status.observed_generation, Some(4));
            shown.join(" ")
        };
        let empty = ClusterObjectSetStatus::default();
        let waiting = not_ready(None);
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
    fn a_failing_watch_is_reported_while_it_fails() {
        let watched = |old: &ClusterObjectSetStatus, unwatched: Option<Unwatched>| {
            let facts = Facts {
                version: &"1.2.3".into(),
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
        let conditions = failing.conditions();
        assert_eq!(unwatched::message(conditions), Some("ConfigMap.v1: no"));
        let ready = find(conditions, "Ready").unwrap();
        assert_eq!(ready.status, "True", "the objects are still read");
        assert!(same(&failing, &watched(&failing, Some(fault))));
        let back = watched(&failing, None);
        assert!(!same(&failing, &back));
        assert_eq!(unwatched::message(back.conditions()), None);
    }

    #[test]
    fn transition_times_are_no_difference() {
        let (one, _) = run(&ClusterObjectSetStatus::default(), &Outcome::RolledOut, None);
        let later: Time = serde_json::from_str("\"2027-01-01T00:00:00Z\"").unwrap();
        let facts = Facts {
            version: &"1.2.3".into(),
            overdue: None,
            observed_phases: None,
            unwatched: None,
            generation: 4,
        };
        assert!(same(&one, &object_set(&one, &Outcome::RolledOut, &facts, &later)));
    }
}
