//! `Ready`, `Reconciling` and `Stalled`: the conditions that generic tools read from any kind.
//!
//! kstatus (and with it Flux, `kubectl wait` and most others) treats an object as current if its
//! `status.observedGeneration` is its generation and `Ready` is true, as failed if `Stalled` is true, and as in
//! progress otherwise. Invariants: the conditions show exactly one `State`; `Reconciling` and `Stalled` are present
//! only while true, as kstatus recommends; each carries reason and message of the condition that decides.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use olm_api::condition::{Status, types::Extension as Type};

use crate::condition::{self, NewCondition};

pub(crate) const READY: &str = Type::Ready.as_str();
pub(crate) const RECONCILING: &str = Type::Reconciling.as_str();
pub(crate) const STALLED: &str = Type::Stalled.as_str();

/// Maximum length of a message in bytes: it repeats the message of another condition.
const MESSAGE_LIMIT: usize = 1024;
/// End of a truncated message.
const TRUNCATED: &str = " [Cut at 1 KiB; Progressing, Available or Installed has more.]";

/// State of an object, for tools that know no condition of OLM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Reconciled and available.
    Ready,
    /// Being reconciled or retried.
    Reconciling,
    /// Reconciled but not available.
    Unavailable,
    /// The object waits for a change by others.
    Stalled,
    /// The state could not be read; the controller retries.
    Unknown,
}

/// State of an object with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The state.
    pub state: State,
    /// Reason from the kind's closed set.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
}

impl Summary {
    /// Returns a summary with reason and message of `condition`.
    #[must_use]
    pub fn of(state: State, condition: &Condition) -> Self {
        Self {
            state,
            reason: condition.reason.clone(),
            message: condition.message.clone(),
        }
    }
}

/// Sets the three conditions. With `None` none of them is present, which kstatus treats as current.
pub fn put(conditions: &mut Vec<Condition>, summary: Option<&Summary>, generation: i64, now: &Time) {
    let mut present: Vec<(&str, Status)> = Vec::new();
    if let Some(summary) = summary {
        present = match summary.state {
            State::Ready => vec![(READY, Status::True)],
            State::Reconciling => vec![(READY, Status::False), (RECONCILING, Status::True)],
            State::Unavailable => vec![(READY, Status::False)],
            State::Stalled => vec![(READY, Status::False), (STALLED, Status::True)],
            State::Unknown => vec![(READY, Status::Unknown), (RECONCILING, Status::True)],
        };
        for (type_, status) in &present {
            let new = NewCondition {
                type_: (*type_).to_owned(),
                status: *status,
                reason: summary.reason.clone(),
                message: condition::truncate(&summary.message, MESSAGE_LIMIT, TRUNCATED),
                observed_generation: generation,
            };
            condition::set(conditions, new, now);
        }
    }
    let keep = |type_: &str| present.iter().any(|(present, _)| *present == type_);
    conditions.retain(|c| ![READY, RECONCILING, STALLED].contains(&c.type_.as_str()) || keep(&c.type_));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_truncated() {
        let now = Time("2026-01-02T03:04:05Z".parse().unwrap());
        let summary = Summary {
            state: State::Stalled,
            reason: "Because".to_owned(),
            message: "ä".repeat(5000),
        };
        let mut conditions = Vec::new();
        put(&mut conditions, Some(&summary), 3, &now);
        for condition in conditions {
            assert!(condition.message.len() <= MESSAGE_LIMIT && condition.message.ends_with(TRUNCATED));
        }
    }

    #[test]
    fn conditions_of_each_state() {
        let now = Time("2026-01-02T03:04:05Z".parse().unwrap());
        let mut conditions = Vec::new();
        let mut show = |state: Option<State>| {
            let summary = state.map(|state| Summary {
                state,
                reason: "Because".to_owned(),
                message: "of this".to_owned(),
            });
            put(&mut conditions, summary.as_ref(), 3, &now);
            let mut shown: Vec<String> = conditions
                .iter()
                .map(|c| format!("{}={}", c.type_, c.status))
                .collect();
            shown.sort();
            shown.join(" ")
        };
        assert_eq!(show(Some(State::Reconciling)), "Ready=False Reconciling=True");
        assert_eq!(show(Some(State::Ready)), "Ready=True");
        assert_eq!(show(Some(State::Stalled)), "Ready=False Stalled=True");
        assert_eq!(show(Some(State::Unavailable)), "Ready=False");
        assert_eq!(show(Some(State::Unknown)), "Ready=Unknown Reconciling=True");
        assert_eq!(show(None), "");
    }
}
