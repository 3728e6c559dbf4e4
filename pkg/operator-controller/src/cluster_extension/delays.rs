//! Limits of the delay before the retry of a failed pass.

use std::time::Duration;

/// Number of failures in a row after which a failure counts as lasting; after about five minutes if rights are missing.
const LASTING: u32 = 40;

/// Limits of the delay before a retry. By default the delay is that of the backoff.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delays {
    longest: Option<Duration>,
    /// Longest delay of a lasting failure, if it differs: thousands of extensions may fail for the same reason.
    longest_if_lasting: Option<Duration>,
    shortest: Duration,
}

impl Delays {
    /// The delay is at most `longest`, for failures that end without an event.
    pub(crate) fn at_most(longest: Duration) -> Self {
        Self {
            longest: Some(longest),
            ..Self::default()
        }
    }

    /// A lasting failure is retried after at most `longest`.
    pub(crate) fn if_lasting_at_most(self, longest: Duration) -> Self {
        Self {
            longest_if_lasting: Some(longest),
            ..self
        }
    }

    /// The delay is at least `shortest`, whatever the other limits are.
    pub(crate) fn at_least(self, shortest: Duration) -> Self {
        Self { shortest, ..self }
    }

    /// The delay is at most `longest`, also that of a lasting failure, and at most as long as before.
    pub(crate) fn sooner(self, longest: Duration) -> Self {
        Self {
            longest: Some(self.longest.map_or(longest, |known| known.min(longest))),
            longest_if_lasting: None,
            shortest: self.shortest,
        }
    }

    /// Returns the delay after `failures` earlier failures in a row, where `backoff` is the delay without limits.
    pub(crate) fn limit(self, backoff: Duration, failures: u32) -> Duration {
        let lasting = self.longest_if_lasting.filter(|_| failures >= LASTING);
        let longest = lasting.or(self.longest);
        longest
            .map_or(backoff, |longest| backoff.min(longest))
            .max(self.shortest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_hold() {
        let seconds = Duration::from_secs;
        let (day, none) = (Duration::from_hours(24), Duration::ZERO);
        assert_eq!(Delays::default().limit(day, LASTING), day);
        let rights = Delays::at_most(seconds(10)).if_lasting_at_most(seconds(60));
        assert_eq!(rights.limit(day, LASTING - 1), seconds(10));
        assert_eq!(rights.limit(day, LASTING), seconds(60));
        assert_eq!(rights.limit(none, LASTING), none, "a limit lengthens no delay");
        assert_eq!(rights.sooner(seconds(3)).limit(day, LASTING), seconds(3));
        assert_eq!(rights.sooner(seconds(30)).limit(day, LASTING), seconds(10));
        assert_eq!(rights.at_least(seconds(90)).limit(day, 0), seconds(90));
    }
}
