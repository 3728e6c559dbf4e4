//! `Ready`, `Reconciling` and `Stalled`: what tools that know nothing of a kind read from its status.
//!
//! kstatus (and with it Flux, `kubectl wait` and most others) takes an object for current when its
//! `status.observedGeneration` is its generation and `Ready` holds, for failed when `Stalled` holds, and for in progress
//! otherwise. Invariants: exactly one of ready, working, impaired and stalled is told; `Reconciling` and `Stalled` are
//! there only while they hold, as kstatus recommends; each carries the reason and message of the condition that decides.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::condition::{self, NewCondition};

pub(crate) const READY: &str = "Ready";
pub(crate) const RECONCILING: &str = "Reconciling";
pub(crate) const STALLED: &str = "Stalled";

/// Longest message in bytes: it repeats that of another condition.
const MESSAGE_LIMIT: usize = 1024;
/// End of a message that was cut.
const CUT: &str = " [Cut at 1 KiB; Progressing, Available or Installed has more.]";

/// The state of an object in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// At rest, everything as the spec wants it, and available.
    Ready,
    /// Something is being done or tried.
    Working,
    /// At rest and as the spec wants it, but not available.
    Impaired,
    /// Only a change from outside helps.
    Stalled,
    /// What there is could not be read; it is tried again.
    Unknown,
}

/// The state of an object, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The state.
    pub state: State,
    /// One word of the kind's reasons.
    pub reason: String,
    /// The same for people.
    pub message: String,
}

impl Summary {
    /// `state` because of what `condition` says.
    #[must_use]
    pub fn of(state: State, condition: &Condition) -> Self {
        Self {
            state,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        }
    }
}

/// Tells `summary` in `conditions`; with `None` nothing is told, which kstatus takes for current.
pub fn put(conditions: &mut Vec<Condition>, summary: Option<&Summary>, generation: i64, now: &Time) {
    let mut told: Vec<(&str, &str)> = Vec::new();
    if let Some(summary) = summary {
        told = match summary.state {
            State::Ready => vec![(READY, "True")],
            State::Working => vec![(READY, "False"), (RECONCILING, "True")],
            State::Impaired => vec![(READY, "False")],
            State::Stalled => vec![(READY, "False"), (STALLED, "True")],
            State::Unknown => vec![(READY, "Unknown"), (RECONCILING, "True")],
        };
        for (type_, status) in &told {
            let new = NewCondition {
                type_: (*type_).to_owned(),
                status: (*status).to_owned(),
                reason: summary.reason.clone(),
                message: condition::bounded(&summary.message, MESSAGE_LIMIT, CUT),
                observed_generation: generation,
            };
            condition::set(conditions, new, now);
        }
    }
    let holds = |type_: &str| told.iter().any(|(told, _)| *told == type_);
    conditions.retain(|c| ![READY, RECONCILING, STALLED].contains(&c.type_.as_str()) || holds(&c.type_));
}

/// The condition of `type_`, if there is one.
pub(crate) fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_repeated_is_short() {
        let now = Time("2026-01-02T03:04:05Z".parse().unwrap());
        let summary = Summary {
            state: State::Stalled,
            reason: "Because".to_owned(),
            message: "ä".repeat(5000),
        };
        let mut conditions = Vec::new();
        put(&mut conditions, Some(&summary), 3, &now);
        for condition in conditions {
            assert!(condition.message.len() <= MESSAGE_LIMIT && condition.message.ends_with(CUT));
        }
    }

    #[test]
    fn only_what_holds_is_there() {
        let now = Time("2026-01-02T03:04:05Z".parse().unwrap());
        let mut conditions = Vec::new();
        let mut tell = |state: Option<State>| {
            let summary = state.map(|state| Summary {
                state,
                reason: "Because".to_owned(),
                message: "of this".to_owned(),
            });
            put(&mut conditions, summary.as_ref(), 3, &now);
            let mut told: Vec<String> = conditions
                .iter()
                .map(|c| format!("{}={}", c.type_, c.status))
                .collect();
            told.sort();
            told.join(" ")
        };
        assert_eq!(tell(Some(State::Working)), "Ready=False Reconciling=True");
        assert_eq!(tell(Some(State::Ready)), "Ready=True");
        assert_eq!(tell(Some(State::Stalled)), "Ready=False Stalled=True");
        assert_eq!(tell(Some(State::Impaired)), "Ready=False");
        assert_eq!(tell(Some(State::Unknown)), "Ready=Unknown Reconciling=True");
        assert_eq!(tell(None), "");
    }
}
