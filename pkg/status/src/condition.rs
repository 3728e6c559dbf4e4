//! Setting conditions by the rules every kind shares.
//!
//! Invariants: one condition per type; `lastTransitionTime` moves only when the status flips and is a
//! whole second; a message is bounded and holds no control character but line feeds and tabs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{RoundMode, TimestampRound, Unit};
use olm_text::{cut, printable};

/// Longest message in bytes. The API server takes 32768, but an object has several conditions, and etcd keeps many objects.
pub const MESSAGE_LIMIT: usize = 8 * 1024;
/// End of a message that was cut.
const CUT: &str = "\n\n[The message is cut at 8 KiB; the log of the controller has all of it.]";

/// A condition as it is now, without the time it became so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    /// What the condition is about.
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word of a fixed set.
    pub reason: String,
    /// What the state is, for people; cut when too long.
    pub message: String,
    /// Generation of the object that was looked at.
    pub observed_generation: i64,
}

/// Puts `new` in the place of the condition of its type, or at the end when there is none.
pub fn set(conditions: &mut Vec<Condition>, new: NewCondition, now: &Time) {
    let mut condition = Condition {
        type_: new.type_,
        status: new.status,
        reason: new.reason,
        message: bounded(&new.message, MESSAGE_LIMIT, CUT),
        observed_generation: Some(new.observed_generation),
        last_transition_time: whole_second(now),
    };
    match conditions.iter_mut().find(|c| c.type_ == condition.type_) {
        Some(old) => {
            if old.status == condition.status {
                condition.last_transition_time = old.last_transition_time.clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
}

/// Whether both say the same of the same generation, whenever they came to say it.
pub fn same_ignoring_time(a: &Condition, b: &Condition) -> bool {
    a.type_ == b.type_
        && a.status == b.status
        && a.reason == b.reason
        && a.message == b.message
        && a.observed_generation == b.observed_generation
}

/// The wire format has whole seconds: what is compared must not have more.
fn whole_second(time: &Time) -> Time {
    let down = TimestampRound::new()
        .smallest(Unit::Second)
        .mode(RoundMode::Floor);
    // Rounding down fails only at the very ends of time.
    Time(time.0.round(down).unwrap_or(time.0))
}

/// `message` for a reader: at most `limit` bytes, of which `end` tells where it was cut, and without control characters.
pub(crate) fn bounded(message: &str, limit: usize, end: &str) -> String {
    // Bounded first: what follows is work for each byte.
    let head = cut(message, limit);
    let shown = printable(&head);
    if message.len() <= limit && shown.len() <= limit {
        return shown.into_owned();
    }
    format!("{}{end}", cut(&shown, limit.saturating_sub(end.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Time {
        Time(text.parse().unwrap())
    }

    fn new(status: &str, message: &str) -> NewCondition {
        NewCondition {
            type_: "Installed".to_owned(),
            status: status.to_owned(),
            reason: "Succeeded".to_owned(),
            message: message.to_owned(),
            observed_generation: 3,
        }
    }

    #[test]
    fn keeps_the_time_until_the_status_flips() {
        let mut conditions = Vec::new();
        set(
            &mut conditions,
            new("True", "a"),
            &time("2026-01-02T03:04:05.999Z"),
        );
        assert_eq!(conditions[0].last_transition_time, time("2026-01-02T03:04:05Z"));
        let before = conditions[0].clone();

        set(&mut conditions, new("True", "b"), &time("2026-01-02T03:05:00Z"));
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].message, "b");
        assert_eq!(conditions[0].last_transition_time, before.last_transition_time);
        assert!(!same_ignoring_time(&conditions[0], &before));

        set(&mut conditions, new("False", "b"), &time("2026-01-02T03:06:00Z"));
        assert_eq!(conditions[0].last_transition_time, time("2026-01-02T03:06:00Z"));
    }

    #[test]
    fn messages_are_bounded_and_printable() {
        let shown = |message: &str| {
            let mut conditions = Vec::new();
            set(
                &mut conditions,
                new("True", message),
                &time("2026-01-02T03:04:05Z"),
            );
            conditions.remove(0).message
        };
        let longest = "x".repeat(MESSAGE_LIMIT);
        assert_eq!(shown(&longest), longest);
        for long in ["é".repeat(MESSAGE_LIMIT), "\0".repeat(MESSAGE_LIMIT)] {
            let message = shown(&long);
            assert!(message.len() <= MESSAGE_LIMIT, "{}", message.len());
            assert!(
                message.ends_with(
                    "…\n\n[The message is cut at 8 KiB; the log of the controller has all of it.]"
                )
            );
        }
        assert_eq!(shown("a\x1b[31m\nb"), "a\\u{1b}[31m\nb");
    }
}
