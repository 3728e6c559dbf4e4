//! Phases of support whose days are relative to today, so that scenarios need no clock of their own.

use anyhow::{Context as _, Result};
use k8s_openapi::jiff::civil::Date;
use k8s_openapi::jiff::tz::TimeZone;
use k8s_openapi::jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

/// Returns the day, in UTC, that is `offset` days after today. Offsets are texts such as `+30` and `-2`.
pub fn day(offset: &str) -> Result<Date> {
    let days: i64 = offset
        .parse()
        .with_context(|| format!("`{offset}` is no number of days"))?;
    let today = TimeZone::UTC.to_datetime(Timestamp::now()).date();
    Ok(today.checked_add(days.days())?)
}

/// Returns the first second after the day with this offset, as Unix time.
pub fn end(offset: &str) -> Result<i64> {
    Ok(day(offset)?
        .tomorrow()?
        .to_zoned(TimeZone::UTC)?
        .timestamp()
        .as_second())
}

/// Parses phases `NAME FROM TO; NAME FROM TO`, in which FROM and TO are offsets in days. Any other text becomes a value that no
/// reader accepts.
pub fn phases(text: &str) -> Value {
    let phase = |text: &str| {
        let (rest, to) = text.trim().rsplit_once(' ')?;
        let (name, from) = rest.rsplit_once(' ')?;
        let (from, to) = (day(from).ok()?.to_string(), day(to).ok()?.to_string());
        Some(json!({"name": name, "startDate": from, "endDate": to}))
    };
    let phases: Option<Vec<Value>> = text.split(';').map(phase).collect();
    phases.map_or_else(|| json!(text), Value::Array)
}
