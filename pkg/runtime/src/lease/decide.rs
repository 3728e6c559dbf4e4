//! Whether to take, keep or wait for a lease. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// What this process saw of a lease held by somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Who holds it; empty when it was released.
    pub holder: String,
    /// How long the holder claims it for.
    pub duration: Duration,
    /// When this process saw the lease change last, by its own clock: the holder's may be wrong.
    pub changed: Timestamp,
}

/// What to do about a lease now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nobody holds it, or its holder went silent: try to take it.
    Acquire,
    /// We hold it: renew it.
    Renew,
    /// Somebody else holds it, for at least this long.
    Wait(Duration),
}

/// Decides by what was seen (`None`: there is no lease), who we are, and the time.
#[must_use]
pub fn evaluate(lease: Option<&Observed>, me: &str, now: Timestamp) -> Decision {
    let Some(lease) = lease else {
        return Decision::Acquire;
    };
    if lease.holder == me {
        return Decision::Renew;
    }
    if lease.holder.is_empty() {
        return Decision::Acquire;
    }
    let silent = now
        .duration_since(lease.changed)
        .max(SignedDuration::ZERO)
        .unsigned_abs();
    match lease.duration.checked_sub(silent) {
        Some(left) if !left.is_zero() => Decision::Wait(left),
        _ => Decision::Acquire,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(137);

    fn held_by(holder: &str, seconds_ago: i64) -> (Observed, Timestamp) {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let changed = Timestamp::from_second(1_000_000 - seconds_ago).unwrap();
        (
            Observed {
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
        // Our clock went backwards: not silent at all, rather than silent for ever.
        let (ahead, now) = held_by("other", -50);
        assert_eq!(evaluate(Some(&ahead), "me", now), Decision::Wait(DURATION));
    }
}
