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

/// Message of `Available` while every object is ready.
const AVAILABLE: &str = "Objects are available and pass all probes.";

/// Outcome of a reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every object is applied and ready.
    RolledOut,
    /// Every object is applied and ready, and must stay so until this time.
    Soaking(Time),
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
    /// The revision is paused: its objects are observed, but not applied.
    Paused(Observed),
}

/// Observation of the objects of a paused revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed {
    /// Every object exists and is ready.
    Ready,
    /// Some objects are missing or not ready.
    NotReady {
        /// One line per object that is missing or not ready.
        lines: Vec<String>,
        /// Reason that the pods of a workload give, as one sentence.
        reason: Option<String>,
    },
    /// The objects belong to a newer revision.
    TakenOver,
    /// The objects cannot be read; holds the error.
    Unread(String),
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
    /// True if the revision must stay available for a while before it counts as rolled out.
    pub soaks: bool,
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
            put(Type::Available, Status::True, Reason::ProbesSucceeded, AVAILABLE);
            if !is_true(old_conditions, Type::Succeeded) {
                put(
                    Type::Succeeded,
                    Status::True,
                    Reason::Succeeded,
                    "Revision succeeded rolling out.",
                );
            }
        }
        Outcome::Soaking(end) => {
            progressing(Status::True, Reason::Soaking, &soaking(facts, end), true);
            put(Type::Available, Status::True, Reason::ProbesSucceeded, AVAILABLE);
        }
        Outcome::NotReady { lines, reason } => {
            let lines = with_reason(&lines.join("\n"), "\n", reason.as_deref());
            let (status, why, text) = unready(facts, old_conditions, &rolling, reason.as_deref(), &lines);
            progressing(status, why, &text, false);
            put(Type::Available, Status::False, Reason::ProbeFailure, &lines);
        }
        Outcome::HandingOver => {
            progressing(Status::True, Reason::RollingOut, &rolling, false);
            if !had_available {
                put(Type::Available, Status::False, Reason::RollingOut, &rolling);
            }
        }
        Outcome::Retrying(message) => {
            let (status, reason, text, terminal) = retrying(facts, old_conditions, message);
            progressing(status, reason, &text, terminal);
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
        Outcome::Paused(observed) => {
            let text = format!(
                "Revision {} is paused: its objects are neither applied nor repaired.",
                facts.version
            );
            progressing(Status::False, Reason::Paused, &text, true);
            if let Some((status, reason, text)) = availability(observed, had_available) {
                put(Type::Available, status, reason, &text);
            }
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

fn soaking(facts: &Facts<'_>, end: &Time) -> String {
    format!(
        "Revision {} is available; it has rolled out if it stays available until {}.",
        facts.version, end.0
    )
}

/// Returns status, reason and message of `Progressing` after an error, and true if the deadline no longer counts.
///
/// A revision that soaks has met its deadline, and an error of the API server says nothing about its objects. The reason stays,
/// because the next pass would not know otherwise that the soak had begun, or had failed.
fn retrying(facts: &Facts<'_>, old: &[Condition], error: &str) -> (Status, Reason, String, bool) {
    let version = &facts.version;
    if is_soaking(facts, old) {
        let text = format!("Revision {version} soaks; its last pass failed and is retried: {error}");
        return (Status::True, Reason::Soaking, text, true);
    }
    if soak_failed(facts, old) {
        let text = format!(
            "Revision {version} did not stay available for the time that spec.soak demands; its last pass failed and is retried: {error}"
        );
        return (Status::False, Reason::SoakFailed, text, false);
    }
    (Status::True, Reason::Retrying, error.to_owned(), false)
}

/// Returns the condition `Progressing` of a revision whose objects are not ready.
fn unready(
    facts: &Facts<'_>,
    old: &[Condition],
    rolling: &str,
    reason: Option<&str>,
    lines: &str,
) -> (Status, Reason, String) {
    if is_soaking(facts, old) || soak_failed(facts, old) {
        let text = format!(
            "Revision {} did not stay available for the time that spec.soak demands: {lines}",
            facts.version
        );
        return (Status::False, Reason::SoakFailed, text);
    }
    (
        Status::True,
        Reason::RollingOut,
        with_reason(rolling, " ", reason),
    )
}

/// Returns true if the soak of the revision has begun and has not ended. `Available` alone does not tell: an error makes it Unknown,
/// also for a revision that was never available.
fn is_soaking(facts: &Facts<'_>, old: &[Condition]) -> bool {
    facts.soaks
        && !is_true(old, Type::Succeeded)
        && (is_true(old, Type::Available) || progresses_as(old, Reason::Soaking))
}

/// Returns true if the soak of the revision has failed. The failure is latched until the revision is available again, so that a reader
/// who is late sees it.
fn soak_failed(facts: &Facts<'_>, old: &[Condition]) -> bool {
    facts.soaks && !is_true(old, Type::Succeeded) && progresses_as(old, Reason::SoakFailed)
}

/// Returns true if `Progressing` has this reason.
fn progresses_as(conditions: &[Condition], reason: Reason) -> bool {
    find(conditions, Type::Progressing).is_some_and(|condition| condition.reason == reason)
}

/// Appends the reason that the pods of a workload give.
fn with_reason(text: &str, separator: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{text}{separator}{reason}"),
        None => text.to_owned(),
    }
}

/// Returns the condition `Available` of a paused revision; none if it stays as it is.
fn availability(observed: &Observed, had_available: bool) -> Option<(Status, Reason, String)> {
    match observed {
        Observed::Ready => Some((Status::True, Reason::ProbesSucceeded, AVAILABLE.to_owned())),
        Observed::NotReady { lines, reason } => {
            let text = with_reason(&lines.join("\n"), "\n", reason.as_deref());
            Some((Status::False, Reason::ProbeFailure, text))
        }
        Observed::Unread(error) if had_available => {
            Some((Status::Unknown, Reason::Reconciling, error.clone()))
        }
        Observed::Unread(_) | Observed::TakenOver => None,
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
            soaks: false,
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
    fn a_difference_in_one_field_is_a_change() {
        let (old, _) = run(&ClusterObjectSetStatus::default(), &Outcome::RolledOut, None);
        let changes: [fn(&mut ClusterObjectSetStatus); 4] = [
            |new| new.observed_phases = Some(vec![]),
            |new| new.observed_generation = Some(5),
            |new| new.conditions = new.conditions.take().map(|all| all.into_iter().skip(1).collect()),
            |new| {
                new.conditions
                    .iter_mut()
                    .flatten()
                    .for_each(|condition| condition.message.push('!'));
            },
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut new = old.clone();
            change(&mut new);
            assert!(!same(&old, &new), "change {at}");
        }
        assert!(same(&old, &old.clone()));
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
    fn a_handover_keeps_what_was_said_of_the_objects() {
        let empty = ClusterObjectSetStatus::default();
        let (_, text) = run(&empty, &Outcome::HandingOver, None);
        let rolling = "RollingOut Revision 1.2.3 is rolling out.";
        assert_eq!(
            text,
            format!("Progressing True {rolling} | Available False {rolling}")
        );
        let (done, _) = run(&empty, &Outcome::RolledOut, None);
        let (_, text) = run(&done, &Outcome::HandingOver, None);
        assert!(text.contains("Available True ProbesSucceeded"), "{text}");
    }

    #[test]
    fn the_first_digests_of_the_phases_stay() {
        let phases = |digest: &str| {
            let phase = serde_json::json!([{"name": "deploy", "digest": digest}]);
            serde_json::from_value::<Vec<ObservedPhase>>(phase).unwrap()
        };
        let observed = |old: Option<Vec<ObservedPhase>>| {
            let old = ClusterObjectSetStatus {
                observed_phases: old,
                ..ClusterObjectSetStatus::default()
            };
            let facts = Facts {
                version: &"1.2.3".into(),
                overdue: None,
                observed_phases: Some(phases("new")),
                unwatched: None,
                soaks: false,
                generation: 4,
            };
            object_set(&old, &Outcome::RolledOut, &facts, &now()).observed_phases
        };
        assert_eq!(observed(None), Some(phases("new")));
        assert_eq!(observed(Some(Vec::new())), Some(phases("new")));
        assert_eq!(observed(Some(phases("old"))), Some(phases("old")));
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
                soaks: false,
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
    fn a_paused_revision_tells_the_truth_about_its_objects() {
        let empty = ClusterObjectSetStatus::default();
        let (done, _) = run(&empty, &Outcome::RolledOut, None);
        let paused = "Progressing False Paused Revision 1.2.3 is paused: its objects are neither applied nor repaired.";
        let cases = [
            (Observed::Ready, "Available True ProbesSucceeded"),
            (
                Observed::NotReady {
                    lines: vec!["Object A: gone".to_owned()],
                    reason: None,
                },
                "Available False ProbeFailure Object A: gone",
            ),
            (Observed::TakenOver, "Available True ProbesSucceeded"),
            (
                Observed::Unread("why".to_owned()),
                "Available Unknown Reconciling why",
            ),
        ];
        for (observed, available) in cases {
            let (status, text) = run(&done, &Outcome::Paused(observed), Some(10));
            assert!(text.contains(paused) && text.contains(available), "{text}");
            assert!(
                is_true(status.conditions(), Type::Stalled) && is_true(status.conditions(), Type::Succeeded)
            );
        }
        let unread = Outcome::Paused(Observed::Unread("why".to_owned()));
        let (_, text) = run(&empty, &unread, None);
        assert_eq!(text, paused, "nothing was said of the objects before");
        let (fresh, text) = run(&empty, &Outcome::Paused(Observed::Ready), None);
        assert!(text.contains("Available True"), "{text}");
        assert!(
            !is_true(fresh.conditions(), Type::Succeeded),
            "success would archive the older revisions"
        );
    }

    #[test]
    fn a_soak_ends_in_success_or_failure() {
        let at = |old: &ClusterObjectSetStatus, outcome: &Outcome, time: &str| {
            let facts = Facts {
                version: &"1.2.3".into(),
                overdue: None,
                observed_phases: None,
                unwatched: None,
                soaks: true,
                generation: 4,
            };
            object_set(old, outcome, &facts, &Time(time.parse().unwrap()))
        };
        let shown = |status: &ClusterObjectSetStatus| {
            let found = find(status.conditions(), Type::Progressing).unwrap();
            format!("{} {} {}", found.status, found.reason, found.message)
        };
        let starting = at(
            &ClusterObjectSetStatus::default(),
            &not_ready(None),
            "2026-01-01T00:00:00Z",
        );
        assert_eq!(shown(&starting), "True RollingOut Revision 1.2.3 is rolling out.");
        let end = Time("2026-01-01T00:11:00Z".parse().unwrap());
        let soaking = at(&starting, &Outcome::Soaking(end.clone()), "2026-01-01T00:01:00Z");
        assert_eq!(
            shown(&soaking),
            "True Soaking Revision 1.2.3 is available; it has rolled out if it stays available until 2026-01-01T00:11:00Z."
        );
        assert!(
            is_true(soaking.conditions(), Type::Available) && !is_true(soaking.conditions(), Type::Ready)
        );
        assert!(
            !is_true(soaking.conditions(), Type::Succeeded),
            "success archives the former revision"
        );
        let later = at(&soaking, &Outcome::Soaking(end.clone()), "2026-01-01T00:05:00Z");
        let since = |status: &ClusterObjectSetStatus| {
            let available = find(status.conditions(), Type::Available).unwrap();
            available.last_transition_time.0
        };
        assert_eq!(since(&later), since(&soaking), "the start of the soak stays");

        let lost = at(&later, &not_ready(None), "2026-01-01T00:06:00Z");
        let failed = "False SoakFailed Revision 1.2.3 did not stay available for the time that spec.soak demands: Object A: x";
        assert_eq!(shown(&lost), failed);
        assert!(is_true(lost.conditions(), Type::Stalled));
        assert_eq!(
            shown(&at(&lost, &not_ready(None), "2026-01-01T00:07:00Z")),
            failed
        );
        let again = at(&lost, &Outcome::Soaking(end), "2026-01-01T00:08:00Z");
        assert!(shown(&again).starts_with("True Soaking ") && since(&again) != since(&soaking));
        let done = at(&again, &Outcome::RolledOut, "2026-01-01T00:18:00Z");
        assert!(is_true(done.conditions(), Type::Succeeded));
        let down = at(&done, &not_ready(None), "2026-01-01T00:19:00Z");
        assert!(shown(&down).starts_with("True RollingOut "), "{}", shown(&down));
    }

    #[test]
    fn errors_during_a_soak_do_not_miss_the_deadline() {
        let pass = |old: &ClusterObjectSetStatus, outcome: &Outcome, overdue: Option<i32>| {
            let facts = Facts {
                version: &"1.2.3".into(),
                overdue,
                observed_phases: None,
                unwatched: None,
                soaks: true,
                generation: 4,
            };
            object_set(old, outcome, &facts, &now())
        };
        let shown = |status: &ClusterObjectSetStatus| {
            let shown = [Type::Progressing, Type::Available].map(|type_| {
                let found = find(status.conditions(), type_).unwrap();
                format!("{} {}", found.status, found.reason)
            });
            shown.join(" | ")
        };
        let retrying = Outcome::Retrying("timed out".to_owned());
        let soaking = Outcome::Soaking(now());
        let empty = ClusterObjectSetStatus::default();

        let mut status = pass(&empty, &soaking, None);
        for _ in 0..3 {
            status = pass(&status, &retrying, Some(10));
            assert_eq!(shown(&status), "True Soaking | Unknown Reconciling");
        }
        let message = &find(status.conditions(), Type::Progressing).unwrap().message;
        assert_eq!(
            message,
            "Revision 1.2.3 soaks; its last pass failed and is retried: timed out"
        );
        assert!(!is_true(status.conditions(), Type::Ready));
        let again = pass(&status, &soaking, Some(10));
        assert_eq!(shown(&again), "True Soaking | True ProbesSucceeded");
        let lost = pass(&status, &not_ready(None), None);
        assert_eq!(
            shown(&lost),
            "False SoakFailed | False ProbeFailure",
            "the error does not hide the loss"
        );
        let hidden = pass(&lost, &retrying, None);
        assert_eq!(shown(&hidden), "False SoakFailed | Unknown Reconciling");
        assert!(is_true(hidden.conditions(), Type::Stalled));
        let still = pass(&hidden, &not_ready(None), None);
        assert_eq!(shown(&still), "False SoakFailed | False ProbeFailure");

        // A revision that was never available misses its deadline, although the errors make `Available` Unknown, too.
        let mut status = pass(&empty, &not_ready(None), None);
        status = pass(&status, &retrying, None);
        assert_eq!(shown(&status), "True Retrying | Unknown Reconciling");
        for _ in 0..2 {
            status = pass(&status, &retrying, Some(10));
            assert_eq!(
                shown(&status),
                "False ProgressDeadlineExceeded | Unknown Reconciling"
            );
        }
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
            soaks: false,
            generation: 4,
        };
        assert!(same(&one, &object_set(&one, &Outcome::RolledOut, &facts, &later)));
    }
}
