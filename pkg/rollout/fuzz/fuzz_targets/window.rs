//! Windows and soaks of a rollout: no schedule, zone or duration breaks the calendar, and every answer lies on its side of the time.
#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use olm_api::RolloutWindow;
use olm_rollout::{State, Windows, soak, soak_end};

/// Longest soak, in seconds: a week.
const WEEK: i64 = 7 * 24 * 3600;

/// The input is a schedule, a zone, minutes and a time in seconds, with zeros between them.
fuzz_target!(|text: &str| {
    let mut parts = text.split('\0');
    let mut next = || parts.next().unwrap_or_default();
    let (schedule, zone) = (next(), next());
    let minutes = next().parse::<u16>().unwrap_or_default();
    let seconds = next().parse::<i64>().unwrap_or_default();
    let Ok(now) = Timestamp::from_second(seconds) else {
        return;
    };
    if let Ok(duration) = soak(schedule) {
        assert!((0..=WEEK).contains(&duration.as_secs()));
        assert!(soak_end(Some(schedule), Some(now), now).is_none_or(|end| end > now));
    }
    // The schema of the API has the same limits.
    if schedule.len() > 128 || zone.len() > 64 {
        return;
    }
    let window = RolloutWindow {
        schedule: schedule.to_owned(),
        duration_minutes: i32::from(minutes % 10080) + 1,
        time_zone: (!zone.is_empty()).then(|| zone.to_owned()),
    };
    let Ok(windows) = Windows::read(&[window]) else {
        return;
    };
    match windows.state(now) {
        State::Unrestricted => unreachable!("there is a window"),
        State::Open { until } => assert!(until.is_none_or(|until| until > now)),
        State::Closed { next } => assert!(next.is_none_or(|next| next > now)),
    }
});
