//! Decision to acquire, renew or wait for a lease. Pure.

use std::time::Duration;

/// State of a lease as this process observed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLease {
    /// Identity of the holder; empty if the lease was released.
    pub holder: String,
    /// Lease duration that the holder claims.
    pub duration: Duration,
    /// Time since the last observed change by the local monotonic clock: wall clocks may be wrong, and may jump.
    pub silence: Duration,
}

/// Next action of a candidate on a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The lease is free or expired: try to acquire it.
    Acquire,
    /// This process holds the lease: renew it.
    Renew,
    /// Another process holds the lease, for at least this long.
    Wait(Duration),
}

/// Decides from the observed lease (`None`: it does not exist) and the own identity.
#[must_use]
pub fn evaluate(lease: Option<&ObservedLease>, identity: &str) -> Decision {
    let Some(lease) = lease else {
        return Decision::Acquire;
    };
    if lease.holder == identity {
        return Decision::Renew;
    }
    if lease.holder.is_empty() {
        return Decision::Acquire;
    }
    match lease.duration.checked_sub(lease.silence) {
        Some(remaining) if !remaining.is_zero() => Decision::Wait(remaining),
        _ => Decision::Acquire,
    }
}

/// Returns the delay before the next attempt to acquire a lease without an event. A watched lease is tried when it
/// expires; the events of its renewals postpone that. Otherwise the lease is polled.
#[must_use]
pub fn next_attempt(decision: Decision, watched: bool, retry_period: Duration) -> Duration {
    match decision {
        Decision::Wait(remaining) if watched => remaining,
        Decision::Wait(_) | Decision::Acquire | Decision::Renew => retry_period,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(137);

    #[test]
    fn a_watched_lease_is_not_polled() {
        let (retry, held) = (Duration::from_secs(2), Decision::Wait(DURATION));
        assert_eq!(next_attempt(held, true, retry), DURATION);
        assert_eq!(next_attempt(held, false, retry), retry);
        // Another candidate was faster, or the API server refused.
        assert_eq!(next_attempt(Decision::Acquire, true, retry), retry);
    }

    fn held_by(holder: &str, silence: u64) -> ObservedLease {
        ObservedLease {
            holder: holder.to_owned(),
            duration: DURATION,
            silence: Duration::from_secs(silence),
        }
    }

    #[test]
    fn decides() {
        assert_eq!(evaluate(None, "me"), Decision::Acquire);
        assert_eq!(evaluate(Some(&held_by("me", 500)), "me"), Decision::Renew);
        assert_eq!(evaluate(Some(&held_by("", 0)), "me"), Decision::Acquire);
        assert_eq!(
            evaluate(Some(&held_by("other", 100)), "me"),
            Decision::Wait(Duration::from_secs(37))
        );
        assert_eq!(
            evaluate(Some(&held_by("other", 0)), "me"),
            Decision::Wait(DURATION)
        );
        assert_eq!(evaluate(Some(&held_by("other", 137)), "me"), Decision::Acquire);
        assert_eq!(evaluate(Some(&held_by("other", 500)), "me"), Decision::Acquire);
    }
}
