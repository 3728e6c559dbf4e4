//! Conditional requests, RFC 9110 section 13.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderName, header};

/// Validators of the selected representation.
#[derive(Clone, Debug)]
pub(super) struct Validators {
    /// Strong entity tag, with its quotes.
    pub(super) etag: String,
    /// Digest of the whole catalog, the same for each of its encodings and selections; none for responses about several
    /// catalogs.
    pub(super) content: Option<String>,
    /// Time of the last modification in whole seconds, if known.
    pub(super) modified: Option<SystemTime>,
}

/// Result of the conditions of a GET or HEAD request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Respond as without conditions.
    Proceed,
    /// Respond with 304.
    NotModified,
    /// Respond with 412.
    Failed,
}

/// Converts seconds since the Unix epoch.
pub(super) fn time(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// Evaluates the conditions in the order of section 13.2.2. Invalid dates are ignored.
pub(super) fn evaluate(headers: &HeaderMap, validators: &Validators) -> Verdict {
    if headers.contains_key(header::IF_MATCH) {
        if !has_tag(headers, &header::IF_MATCH, &validators.etag, false) {
            return Verdict::Failed;
        }
    } else if date(headers, &header::IF_UNMODIFIED_SINCE)
        .is_some_and(|since| validators.modified.is_some_and(|modified| modified > since))
    {
        return Verdict::Failed;
    }
    if headers.contains_key(header::IF_NONE_MATCH) {
        if has_tag(headers, &header::IF_NONE_MATCH, &validators.etag, true) {
            return Verdict::NotModified;
        }
    } else if date(headers, &header::IF_MODIFIED_SINCE)
        .is_some_and(|since| validators.modified.is_some_and(|modified| modified <= since))
    {
        return Verdict::NotModified;
    }
    Verdict::Proceed
}

/// Reports whether `Range` applies: `If-Range` is absent or matches the validators.
pub(super) fn range_applies(headers: &HeaderMap, validators: &Validators) -> bool {
    match headers
        .get(header::IF_RANGE)
        .map(|value| value.to_str().unwrap_or_default().trim())
    {
        None => true,
        Some(tag) if tag.starts_with('"') => tag == validators.etag,
        Some(text) => httpdate::parse_http_date(text).is_ok_and(|date| Some(date) == validators.modified),
    }
}

/// Reports whether a list of entity tags contains `etag` or `*`. With `weak`, tags marked weak count too.
fn has_tag(headers: &HeaderMap, name: &HeaderName, etag: &str, weak: bool) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|list| {
            // Our tags contain neither comma nor quote, so splitting finds them.
            list.split(',').map(str::trim).any(|tag| {
                let tag = if weak {
                    tag.strip_prefix("W/").unwrap_or(tag)
                } else {
                    tag
                };
                tag == "*" || tag == etag
            })
        })
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(pairs: &[(&str, &str)]) -> Verdict {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value.parse().unwrap(),
            );
        }
        let modified = httpdate::parse_http_date("Fri, 02 Jan 2026 03:04:05 GMT").unwrap();
        evaluate(
            &headers,
            &Validators {
                etag: "\"a\"".to_owned(),
                content: None,
                modified: Some(modified),
            },
        )
    }

    #[test]
    fn the_order_of_the_rfc() {
        let (before, same) = ("Fri, 02 Jan 2026 02:04:05 GMT", "Fri, 02 Jan 2026 03:04:05 GMT");
        for (headers, expected) in [
            (vec![], Verdict::Proceed),
            (vec![("if-none-match", "\"a\"")], Verdict::NotModified),
            (vec![("if-none-match", "\"b\", W/\"a\"")], Verdict::NotModified),
            (vec![("if-none-match", "*")], Verdict::NotModified),
            (
                vec![("if-none-match", "\"b\""), ("if-modified-since", same)],
                Verdict::Proceed,
            ),
            (vec![("if-modified-since", same)], Verdict::NotModified),
            (vec![("if-modified-since", before)], Verdict::Proceed),
            (vec![("if-modified-since", "garbage")], Verdict::Proceed),
            (vec![("if-match", "\"b\"")], Verdict::Failed),
            (vec![("if-match", "W/\"a\"")], Verdict::Failed),
            (vec![("if-match", "\"a\"")], Verdict::Proceed),
            (
                vec![("if-match", "*"), ("if-unmodified-since", before)],
                Verdict::Proceed,
            ),
            (vec![("if-unmodified-since", before)], Verdict::Failed),
            (vec![("if-unmodified-since", same)], Verdict::Proceed),
        ] {
            assert_eq!(verdict(&headers), expected, "{headers:?}");
        }
    }
}
