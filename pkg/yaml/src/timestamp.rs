//! Timestamps, for the tag `!!timestamp`.

use jiff::civil::Date;

/// Returns true if a text is a timestamp in a form of Go's reader: a date; a date and a time, separated by a
/// space; a date, a time and a zone, with `T` or `t` before the time. Months, days and times may have one digit.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let (date, rest) = match text.find(['T', 't', ' ']) {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    is_date(date)
        && match rest.bytes().next() {
            None => true,
            Some(b' ') => rest.get(1..).is_some_and(is_time),
            Some(_) => rest.get(1..).is_some_and(|rest| {
                let at = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
                let (time, zone) = rest.split_at(at);
                is_time(time) && is_zone(zone)
            }),
        }
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let (Some(year), Some(month), Some(day), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let year = (year.len() == 4).then(|| digits(year, 4)).flatten();
    let (Some(year), Some(month), Some(day)) = (year, digits(month, 2), digits(day, 2)) else {
        return false;
    };
    match (i16::try_from(year), i8::try_from(month), i8::try_from(day)) {
        (Ok(year), Ok(month), Ok(day)) => Date::new(year, month, day).is_ok(),
        _ => false,
    }
}

fn is_time(text: &str) -> bool {
    let mut parts = text.splitn(3, ':');
    let (Some(hour), Some(minute), Some(second)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (second, fraction) = match second.find(['.', ',']) {
        Some(at) => (second.get(..at).unwrap_or(""), second.get(at + 1..)),
        None => (second, None),
    };
    let below = |text, limit| digits(text, 2).is_some_and(|value| value < limit);
    let fraction_fits =
        fraction.is_none_or(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()));
    below(hour, 24) && below(minute, 60) && below(second, 60) && fraction_fits
}

fn is_zone(text: &str) -> bool {
    if text == "Z" {
        return true;
    }
    let Some((hours, minutes)) = text
        .strip_prefix(['+', '-'])
        .and_then(|rest| rest.split_once(':'))
    else {
        return false;
    };
    let two = |text: &str, limit| text.len() == 2 && digits(text, 2).is_some_and(|value| value <= limit);
    two(hours, 24) && two(minutes, 60)
}

/// Parses a number of at most `most` digits.
fn digits(text: &str, most: usize) -> Option<u16> {
    let fits = !text.is_empty() && text.len() <= most && text.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| text.parse().ok()).flatten()
}
