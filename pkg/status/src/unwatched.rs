//! `WatchFailing`: some objects of a revision are read on an interval, as their watch fails.
//!
//! The condition is there only while it holds, like `Reconciling` and `Stalled`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::condition::{self, NewCondition};
use crate::summary::find;

/// Type of the condition.
pub const WATCH_FAILING: &str = "WatchFailing";

/// Why objects are not watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwatched {
    /// Cause of the first kind's failure.
    pub reason: &'static str,
    /// Kinds and causes.
    pub message: String,
}

/// Sets the condition, or takes it away.
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
                status: "True".to_owned(),
                reason: unwatched.reason.to_owned(),
                message: unwatched.message.clone(),
                observed_generation: generation,
            };
            condition::set(conditions, new, now);
        }
    }
}

/// The message of the condition, where it holds.
#[must_use]
pub fn told(conditions: Option<&[Condition]>) -> Option<&str> {
    find(conditions.unwrap_or_default(), WATCH_FAILING).map(|condition| condition.message.as_str())
}
