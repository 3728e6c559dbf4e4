//! Updates of conditions, by rules that all kinds share.
//!
//! Invariants: one condition per type; `lastTransitionTime` changes only with the status and is a whole second; a
//! message is bounded and holds no control characters except line feeds and tabs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::{RoundMode, TimestampRound, Unit};
use olm_api::condition::Status;
use olm_text::{cut, printable};

/// Maximum length of a message in bytes. The API server accepts 32768, but an object has several conditions, and
/// etcd keeps many objects.
pub const MESSAGE_LIMIT: usize = 8 * 1024;
/// End of a truncated message.
const TRUNCATED: &str = "\n\n[The message is cut at 8 KiB; the log of the controller has all of it.]";

/// A condition without its transition time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    /// Type of the condition.
    pub type_: String,
    /// Status of the condition.
    pub status: Status,
    /// CamelCase word of a closed set.
    pub reason: String,
    /// Human-readable message; truncated if too long.
    pub message: String,
    /// Generation of the object that the condition describes.
    pub observed_generation: i64,
}

/// Replaces the condition of the same type, or appends `new`.
pub fn set(conditions: &mut Vec<Condition>, new: NewCondition, now: &Time) {
    let mut condition = Condition {
        type_: new.type_,
        status: new.status.into(),
        reason: new.reason,
        message: truncate(&new.message, MESSAGE_LIMIT, TRUNCATED),
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

/// Returns true if the conditions differ in nothing but transition times.
pub fn same_ignoring_time(a: &Condition, b: &Condition) -> bool {
    a.type_ == b.type_
        && a.status == b.status
        && a.reason == b.reason
        && a.message == b.message
        && a.observed_generation == b.observed_generation
}

/// Truncates to whole seconds, the precision of the wire format.
fn whole_second(time: &Time) -> Time {
    let down = TimestampRound::new()
        .smallest(Unit::Second)
        .mode(RoundMode::Floor);
    // Rounding down fails only at the limits of the time range.
    Time(time.0.round(down).unwrap_or(time.0))
}

/// Removes control characters and truncates to `limit` bytes, with `end` as the mark of truncation.
pub(crate) fn truncate(message: &str, limit: usize, end: &str) -> String {
    // Truncate first: escaping costs time per byte.
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

    fn new(status: Status, message: &str) -> NewCondition {
        NewCondition {
            type_: "Installed".to_owned(),
            status,
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
            new(Status::True, "a"),
            &time("2026-01-02T03:04:05.999Z"),
        );
        assert_eq!(conditions[0].last_transition_time, time("2026-01-02T03:04:05Z"));
        let before = conditions[0].clone();

        set(
            &mut conditions,
            new(Status::True, "b"),
            &time("2026-01-02T03:05:00Z"),
        );
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].message, "b");
        assert_eq!(conditions[0].last_transition_time, before.last_transition_time);
        assert!(!same_ignoring_time(&conditions[0], &before));

        set(
            &mut conditions,
            new(Status::False, "b"),
            &time("2026-01-02T03:06:00Z"),
        );
        assert_eq!(conditions[0].last_transition_time, time("2026-01-02T03:06:00Z"));
    }

    #[test]
    fn conditions_are_compared_in_all_but_their_time() {
        let mut conditions = Vec::new();
        set(
            &mut conditions,
            new(Status::True, "a"),
            &time("2026-01-02T03:04:05Z"),
        );
        let one = conditions.remove(0);
        let changes: [fn(&mut Condition); 5] = [
            |other| other.type_ = "Progressing".to_owned(),
            |other| other.status = "False".to_owned(),
            |other| other.reason = "Failed".to_owned(),
            |other| other.message = "b".to_owned(),
            |other| other.observed_generation = Some(4),
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut other = one.clone();
            change(&mut other);
            assert!(!same_ignoring_time(&one, &other), "change {at}");
        }
        let later = Condition {
            last_transition_time: time("2026-01-02T03:04:06Z"),
            ..one.clone()
        };
        assert!(same_ignoring_time(&one, &later));
    }

    #[test]
    fn messages_are_bounded_and_printable() {
        let shown = |message: &str| {
            let mut conditions = Vec::new();
            set(
                &mut conditions,
                new(Status::True, message),
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
