//! Soaking: the time for which a new revision must stay available before it counts as rolled out.

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

/// Longest soak, in hours: a week.
const MAX_HOURS: i64 = 168;

/// Fault of `spec.rollout.soak`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "spec.rollout.soak \"{0}\" is no duration of at most {MAX_HOURS}h; use hours, minutes and seconds, such as 10m or 1h30m"
)]
pub struct SoakError(String);

/// Parses a duration of whole hours, minutes and seconds, in this order.
///
/// # Errors
/// The text is no such duration, or longer than a week.
pub fn soak(text: &str) -> Result<SignedDuration, SoakError> {
    let fault = || SoakError(text.to_owned());
    let mut seconds = 0_i64;
    let mut rest = text;
    for (unit, factor) in [('h', 3600), ('m', 60), ('s', 1)] {
        let Some((number, after)) = rest.split_once(unit) else {
            continue;
        };
        if number.is_empty() || number.len() > 6 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(fault());
        }
        let number: i64 = number.parse().map_err(|_| fault())?;
        seconds += number * factor;
        rest = after;
    }
    if text.is_empty() || !rest.is_empty() || seconds > MAX_HOURS * 3600 {
        return Err(fault());
    }
    Ok(SignedDuration::from_secs(seconds))
}

/// Returns the end of the soak of a revision that is available since `since`, or since `now` if that is unknown; none if
/// the soak is over. A soak that does not parse counts as none: the extension reports it.
#[must_use]
pub fn soak_end(text: Option<&str>, since: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let duration = soak(text?).ok()?;
    // A clock that was moved back does not prolong the soak. Conditions know whole seconds only.
    let since = since.unwrap_or(now).min(now);
    let since = Timestamp::from_second(since.as_second()).unwrap_or(since);
    since.checked_add(duration).ok().filter(|end| *end > now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_hours_minutes_and_seconds() {
        for (text, seconds) in [
            ("10m", 600),
            ("1h30m", 5400),
            ("90s", 90),
            ("1h1m1s", 3661),
            ("168h", 604_800),
            ("0s", 0),
        ] {
            assert_eq!(soak(text), Ok(SignedDuration::from_secs(seconds)), "{text}");
        }
        for text in [
            "", "10", "m", "1.5h", "-1m", "1m1h", "1m1m", "169h", "9999999s", "1d", " 1m", "+1m", "1m ",
        ] {
            assert_eq!(soak(text), Err(SoakError(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn a_soak_runs_from_the_time_of_availability() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let (since, end) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:10:00Z"));
        let soak_end = |since, now: &str| soak_end(Some("10m"), since, at(now));
        assert_eq!(soak_end(Some(since), "2026-01-01T00:00:00Z"), Some(end));
        assert_eq!(soak_end(Some(since), "2026-01-01T00:09:59Z"), Some(end));
        assert_eq!(soak_end(Some(since), "2026-01-01T00:10:00Z"), None);
        assert_eq!(soak_end(None, "2026-01-01T00:00:00Z"), Some(end));
        assert_eq!(
            soak_end(Some(end), "2026-01-01T00:00:00Z"),
            Some(end),
            "the clock was moved back"
        );
        assert_eq!(super::soak_end(None, None, since), None);
        assert_eq!(super::soak_end(Some("x"), None, since), None);
        assert_eq!(super::soak_end(Some("0s"), None, since), None);
    }
}
