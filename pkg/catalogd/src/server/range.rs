//! `Range: bytes=…` with a single range. Several ranges are ignored, which RFC 9110 section 14.2 allows, and so are
//! other units, as it demands.

use axum::http::{HeaderMap, header};

/// Range that a `Range` header selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    /// The whole content.
    Whole,
    /// Part of the content.
    Part {
        /// Offset of the first byte.
        start: u64,
        /// Length in bytes, at least 1.
        length: u64,
    },
    /// No byte of the content: 416.
    Unsatisfiable,
}

/// Parses the header for content of `size` bytes. A malformed header is 416, as in Go.
pub(super) fn parse(headers: &HeaderMap, size: u64) -> Range {
    let Some(text) = headers.get(header::RANGE).and_then(|value| value.to_str().ok()) else {
        return Range::Whole;
    };
    let Some((unit, list)) = text.split_once('=') else {
        return Range::Unsatisfiable;
    };
    if !unit.eq_ignore_ascii_case("bytes") {
        return Range::Whole;
    }
    let mut ranges = list.split(',').map(str::trim).filter(|range| !range.is_empty());
    let (first, second) = (ranges.next(), ranges.next());
    let Some(range) = first else { return Range::Whole };
    if second.is_some() {
        return Range::Whole;
    }
    one(range, size).unwrap_or(Range::Unsatisfiable)
}

fn one(range: &str, size: u64) -> Option<Range> {
    let (start, end) = range.split_once('-')?;
    let (start, end) = (start.trim(), end.trim());
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    if start.is_empty() {
        let length = number(end)?.min(size);
        return (length > 0).then_some(Range::Part {
            start: size - length,
            length,
        });
    }
    let start = number(start)?;
    let end = if end.is_empty() { u64::MAX } else { number(end)? };
    if end < start || start >= size {
        return None;
    }
    Some(Range::Part {
        start,
        length: end.min(size - 1) - start + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let part = |start, length| Range::Part { start, length };
        for (text, range) in [
            ("bytes=0-9", part(0, 10)),
            ("bytes=5-", part(5, 95)),
            ("bytes=-10", part(90, 10)),
            ("bytes=-1000", part(0, 100)),
            ("bytes=90-1000", part(90, 10)),
            ("bytes=0-0", part(0, 1)),
            ("bytes=0-1,5-9", Range::Whole),
            ("bytes=100-", Range::Unsatisfiable),
            ("bytes=-0", Range::Unsatisfiable),
            ("bytes=9-5", Range::Unsatisfiable),
            ("bytes=a-b", Range::Unsatisfiable),
            ("bytes=99999999999999999999999-", Range::Unsatisfiable),
            ("0-9", Range::Unsatisfiable),
            ("Bytes=0-9", part(0, 10)),
            ("lines=0-9", Range::Whole),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::RANGE, text.parse().unwrap());
            assert_eq!(parse(&headers, 100), range, "{text}");
        }
        assert_eq!(parse(&HeaderMap::new(), 0), Range::Whole);
    }
}
