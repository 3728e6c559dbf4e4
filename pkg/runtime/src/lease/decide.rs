//! Decision to acquire, renew or wait for a lease. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// State of a lease as this process observed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLease {
    /// Identity of the holder; empty if the lease was released.
    pub holder: String,
    /// Lease duration that the holder claims.
    pub duration: Duration,
    /// Time of the last observed change by the local clock: the holder's clock may be wrong.
    pub changed: Timestamp,
}

/// Next action on a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The lease is free or expired: try to acquire it.
    Acquire,
    /// This process holds the lease: renew it.
    Renew,
    /// Another process holds the lease, for at least this long.
    Wait(Duration),
}

/// Decides from the observed lease (`None`: it does not exist), the own identity, and the time.
#[must_use]
pub fn evaluate(lease: Option<&ObservedLease>, identity: &str, now: Timestamp) -> Decision {
    let Some(lease) = lease else {
        return Decision::Acquire;
    };
    if lease.holder == identity {
        return Decision::Renew;
    }
    if lease.holder.is_empty() {
        return Decision::Acquire;
    }
    let silence = now
        .duration_since(lease.changed)
        .max(SignedDuration::ZERO)
        .unsigned_abs();
    match lease.duration.checked_sub(silence) {
        Some(remaining) if !remaining.is_zero() => Decision::Wait(remaining),
        _ => Decision::Acquire,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(137);

    fn held_by(holder: &str, seconds_ago: i64) -> (ObservedLease, Timestamp) {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let changed = Timestamp::from_second(1_000_000 - seconds_ago).unwrap();
        (
            ObservedLease {
                holder: holder.to_owned(),
                duration: DURATION,
                changed,
            },
            now,
        )
    }

    #[test]
    fn decides() {
        let (mine, now) = held_by("me", 500);
        assert_eq!(evaluate(None, "me", now), Decision::Acquire);
        assert_eq!(evaluate(Some(&mine), "me", now), Decision::Renew);
        let (released, now) = held_by("", 0);
        assert_eq!(evaluate(Some(&released), "me", now), Decision::Acquire);
        let (theirs, now) = held_by("other", 100);
        assert_eq!(
            evaluate(Some(&theirs), "me", now),
            Decision::Wait(Duration::from_secs(37))
        );
        let (expired, now) = held_by("other", 137);
        assert_eq!(evaluate(Some(&expired), "me", now), Decision::Acquire);
        // The local clock went backwards: the holder counts as alive.
        let (ahead, now) = held_by("other", -50);
        assert_eq!(evaluate(Some(&ahead), "me", now), Decision::Wait(DURATION));
    }
}
