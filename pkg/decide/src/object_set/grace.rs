//! Grace for outdated statuses during a soak. Pure.

use std::time::Duration;

use jiff::Timestamp;
use olm_api::ClusterObjectSet;
use olm_api::condition::{find_true, is_true, types::ObjectSet as Type};

/// Time for which an outdated status does not end a soak.
///
/// A change of a spec, such as that of an autoscaler, makes the status outdated until the controller of the object writes the status
/// again: usually milliseconds, and about 17 s if that controller first has to win the default lease of Kubernetes' controllers from a
/// leader that died.
const STATUS_GRACE: Duration = Duration::from_secs(30);

/// Continuation of a soak despite an outdated status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// End of the soak. A soak whose end has passed goes on, since a revision succeeds with current statuses only.
    pub soak_end: Timestamp,
    /// Time that is left for the status to become current.
    pub left: Duration,
}

/// Returns the grace of a soaking revision that has lacked nothing but current statuses for `outdated`; `None` if it counts as not
/// ready.
///
/// A revision that is not available yet gets no grace: the status describes the former content.
pub fn grace(set: &ClusterObjectSet, outdated: Duration, now: Timestamp) -> Option<Grace> {
    if is_true(set.conditions(), Type::Succeeded) {
        return None;
    }
    let available = find_true(set.conditions(), Type::Available)?;
    // A clock that was moved back does not prolong the soak.
    let since = available.last_transition_time.0.min(now);
    let soak_end = olm_rollout::soak_end(set.spec.soak.as_deref(), Some(since), since)?;
    let left = STATUS_GRACE.checked_sub(outdated)?;
    (!left.is_zero()).then_some(Grace { soak_end, left })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object_set::soak_end;
    use serde_json::{Value, json};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn set(soak: Option<&str>, conditions: &[(&str, &str)]) -> ClusterObjectSet {
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(type_, status)| {
                json!({"type": type_, "status": status, "reason": "R", "message": "",
                    "lastTransitionTime": "2026-01-01T00:01:00Z"})
            })
            .collect();
        serde_json::from_value(json!({"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "x-1"},
            "spec": {"lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent", "soak": soak},
            "status": {"conditions": conditions}}))
        .unwrap()
    }

    #[test]
    fn a_soak_outlasts_a_short_change_and_no_long_one() {
        let soaking = set(Some("10m"), &[("Available", "True"), ("Progressing", "True")]);
        let now = at("2026-01-01T00:05:00Z");
        let left = |outdated| grace(&soaking, Duration::from_millis(outdated), now).map(|grace| grace.left);
        assert_eq!(left(0), Some(Duration::from_secs(30)));
        assert_eq!(left(29_999), Some(Duration::from_millis(1)));
        assert_eq!(left(30_000), None);
        assert_eq!(left(u64::MAX), None);
    }

    #[test]
    fn the_clock_of_the_soak_goes_on() {
        let soaking = set(Some("10m"), &[("Available", "True")]);
        let end = |now: &str| grace(&soaking, Duration::ZERO, at(now)).map(|grace| grace.soak_end);
        let during = "2026-01-01T00:05:00Z";
        assert_eq!(end(during), Some(at("2026-01-01T00:11:00Z")));
        assert_eq!(end(during), soak_end(&soaking, at(during)));
        assert_eq!(end("2026-01-01T00:12:00Z"), Some(at("2026-01-01T00:11:00Z")));
        let before = "2026-01-01T00:00:00Z";
        assert_eq!(
            end(before),
            soak_end(&soaking, at(before)),
            "the clock was moved back"
        );
    }

    #[test]
    fn only_a_soaking_revision_has_a_grace() {
        let rolling_out = ("Available", "False");
        let available = ("Available", "True");
        for (soak, conditions) in [
            (Some("10m"), vec![]),
            (Some("10m"), vec![rolling_out]),
            (Some("10m"), vec![("Available", "Unknown")]),
            (Some("10m"), vec![available, ("Succeeded", "True")]),
            (Some("0s"), vec![available]),
            (None, vec![available]),
        ] {
            let found = grace(
                &set(soak, &conditions),
                Duration::ZERO,
                at("2026-01-01T00:05:00Z"),
            );
            assert_eq!(found, None, "{soak:?} {conditions:?}");
        }
    }
}
