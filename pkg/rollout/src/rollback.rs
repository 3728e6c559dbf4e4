//! Decides if an extension goes forward to the bundle of its source, back to a former revision, or stays.
//!
//! Invariants, which `tests/rollbacks.rs` checks over random histories: after an automatic rollback, the next automatic
//! one follows a rollout with other inputs; equal inputs are never tried again; without a change of the inputs, a
//! decision that was carried out is followed by no other write.

use olm_api::FailurePolicy;
use olm_api::rollback::{Rollback, RolloutAttempt};

/// Facts that the direction depends on.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// `spec.rollout.rollBackTo`.
    pub request: Option<i64>,
    /// `spec.rollout.onFailure`.
    pub on_failure: FailurePolicy,
    /// Newest Active revision; none before the first installation.
    pub newest: Option<Newest<'a>>,
    /// Number of the newest revision that has rolled out.
    pub installed: Option<i64>,
    /// Inputs of the rollout that the spec and the catalogs ask for now; none if no catalog could be read.
    pub next: Option<&'a RolloutAttempt>,
}

/// Facts about the newest revision.
#[derive(Clone, Copy, Debug)]
pub struct Newest<'a> {
    /// Number of the revision.
    pub number: i64,
    /// True if its rollout has failed.
    pub failed: bool,
    /// True if its objects are those of the installed revision, so that a rollback would change nothing.
    pub same_objects: bool,
    /// Record of the revision, if it has the content of a former one.
    pub rollback: Option<&'a Rollback>,
}

/// Direction of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The bundle of the source is rolled out.
    Forward,
    /// The content of the revision with number `to` becomes a new revision.
    Restore {
        /// Number of the former revision.
        to: i64,
        /// True if the failure of the newest revision is the cause, false if the spec is.
        automatic: bool,
    },
    /// The newest revision stays, because it has the content of the revision that the spec names.
    StayRequested,
    /// The newest revision stays, because it replaces a failed one whose inputs have not changed.
    StayFailed,
}

/// Decides the direction.
#[must_use]
pub fn direction(at: &Situation<'_>) -> Direction {
    if let Some(to) = at.request {
        let fulfilled = at.newest.is_some_and(|newest| {
            newest.number == to || newest.rollback.is_some_and(|rollback| rollback.to == to)
        });
        return if fulfilled {
            Direction::StayRequested
        } else {
            Direction::Restore { to, automatic: false }
        };
    }
    let Some(newest) = at.newest else {
        return Direction::Forward;
    };
    if let Some(rollback) = newest.rollback {
        let Some(failure) = &rollback.failure else {
            return Direction::Forward;
        };
        // Without an answer of the catalogs, nothing shows that the inputs changed.
        let changed = at.next.is_some_and(|next| !failure.attempt.is_same_as(next));
        return if changed {
            Direction::Forward
        } else {
            Direction::StayFailed
        };
    }
    match at.installed {
        Some(to)
            if at.on_failure == FailurePolicy::RollBack
                && newest.failed
                && !newest.same_objects
                && to < newest.number =>
        {
            Direction::Restore { to, automatic: true }
        }
        _ => Direction::Forward,
    }
}

#[cfg(test)]
mod tests {
    use olm_api::rollback::RolloutFailure;

    use super::*;

    fn attempt(version: &str) -> RolloutAttempt {
        RolloutAttempt {
            version: version.to_owned(),
            ..RolloutAttempt::default()
        }
    }

    fn newest(number: i64, failed: bool, rollback: Option<&Rollback>) -> Newest<'_> {
        Newest {
            number,
            failed,
            same_objects: false,
            rollback,
        }
    }

    fn situation<'a>(newest: impl Into<Option<Newest<'a>>>, installed: Option<i64>) -> Situation<'a> {
        Situation {
            request: None,
            on_failure: FailurePolicy::RollBack,
            newest: newest.into(),
            installed,
            next: None,
        }
    }

    fn back(to: i64, automatic: bool) -> Direction {
        Direction::Restore { to, automatic }
    }

    #[test]
    fn only_a_failed_upgrade_is_rolled_back_and_only_if_the_spec_says_so() {
        let failed = situation(newest(2, true, None), Some(1));
        assert_eq!(direction(&failed), back(1, true));
        let waits = Situation {
            on_failure: FailurePolicy::Wait,
            ..failed
        };
        assert_eq!(direction(&waits), Direction::Forward);
        for forward in [
            situation(None, None),
            situation(newest(1, true, None), None),
            situation(newest(2, false, None), Some(1)),
            situation(newest(2, true, None), Some(2)),
        ] {
            assert_eq!(direction(&forward), Direction::Forward);
        }
        let mut same = failed;
        same.newest = same.newest.map(|newest| Newest {
            same_objects: true,
            ..newest
        });
        assert_eq!(direction(&same), Direction::Forward);
    }

    #[test]
    fn a_failed_version_waits_for_a_change() {
        let record = Rollback {
            to: 1,
            from: 2,
            from_version: "1.1.0".to_owned(),
            failure: Some(RolloutFailure {
                attempt: attempt("1.1.0"),
                message: "it crashes".to_owned(),
            }),
        };
        // A rollback that fails is not rolled back.
        for failed in [true, false] {
            let mut at = situation(newest(3, failed, Some(&record)), Some(1));
            assert_eq!(direction(&at), Direction::StayFailed);
            let same = attempt("1.1.0");
            at.next = Some(&same);
            assert_eq!(direction(&at), Direction::StayFailed);
            let other = attempt("1.1.1");
            at.next = Some(&other);
            assert_eq!(direction(&at), Direction::Forward);
        }
    }

    #[test]
    fn a_request_holds_while_the_spec_has_it() {
        let mut at = situation(newest(2, false, None), Some(2));
        at.request = Some(1);
        assert_eq!(direction(&at), back(1, false));
        let record = Rollback {
            to: 1,
            from: 2,
            ..Rollback::default()
        };
        let mut done = situation(newest(3, true, Some(&record)), Some(2));
        done.request = Some(1);
        assert_eq!(direction(&done), Direction::StayRequested);
        done.request = Some(3);
        assert_eq!(direction(&done), Direction::StayRequested, "the newest itself");
        done.request = Some(2);
        assert_eq!(direction(&done), back(2, false));
        done.request = None;
        assert_eq!(direction(&done), Direction::Forward);
        let mut none = situation(None, None);
        none.request = Some(1);
        assert_eq!(direction(&none), back(1, false));
    }
}
