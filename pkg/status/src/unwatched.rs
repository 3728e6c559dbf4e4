//! `WatchFailing`: the controller reads some objects of a revision on an interval, as their watch fails.
//!
//! Like `Reconciling` and `Stalled`, the condition is present only while true.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use olm_api::condition::{Status, find, types::ObjectSet as Type};

use crate::condition::{self, NewCondition};

const WATCH_FAILING: &str = Type::WatchFailing.as_str();

/// Kinds of a revision whose watch fails, as the condition `WatchFailing` shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwatched {
    /// Cause of the first kind's failure.
    pub reason: &'static str,
    /// Kinds and causes.
    pub message: String,
}

/// Sets or removes the condition.
pub(crate) fn put(
    conditions: &mut Vec<Condition>,
    unwatched: Option<&Unwatched>,
    generation: i64,
    now: &Time,
) {
    match unwatched {
        None => conditions.retain(|condition| condition.type_ != WATCH_FAILING),
        Some(unwatched) => {
            let new = NewCondition {
                type_: WATCH_FAILING.to_owned(),
                status: Status::True,
                reason: unwatched.reason.to_owned(),
                message: unwatched.message.clone(),
                observed_generation: generation,
            };
            condition::set(conditions, new, now);
        }
    }
}

/// Returns the message of the condition, if present.
#[must_use]
pub fn message(conditions: &[Condition]) -> Option<&str> {
    find(conditions, WATCH_FAILING).map(|condition| condition.message.as_str())
}
