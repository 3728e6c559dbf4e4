//! Properties of the parsers of requests: they hold for every query and every header. The fuzz targets check them, too.

use axum::http::{HeaderMap, HeaderValue, header};

use super::conditional::{Validators, Verdict, evaluate, range_applies, time};
use super::encoding::{accepted, token};
use super::project::Projection;
use super::query;
use super::range::{Range, parse};

/// Headers that [`conditions`] fills.
const HEADERS: [header::HeaderName; 6] = [
    header::IF_NONE_MATCH,
    header::ACCEPT_ENCODING,
    header::IF_MATCH,
    header::IF_RANGE,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
];

/// Object with all shapes of values that a projection traverses.
const OBJECT: &str = r#"{"a":{"b":[{"c":1},[2],{"c":null}],"d":"x"},"b":[],"name":"n","schema":"s"}"#;

/// Parses a query and applies its projection: the result is an object, and no longer than the input.
pub(super) fn query(text: &str) {
    let Ok(found) = query::parse(Some(text)) else {
        return;
    };
    let named = [&found.filter.schema, &found.filter.package, &found.filter.name];
    assert!(named.into_iter().flatten().all(|value| !value.is_empty()));
    if let Some(projection) = found.projection {
        let projected = apply(&projection, OBJECT.as_bytes());
        assert!(projected.len() <= OBJECT.len());
        assert_eq!(
            apply(&projection, &projected),
            projected,
            "a second time changes nothing"
        );
    }
}

fn apply(projection: &Projection, object: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let written = projection.apply(object, &mut out);
    assert!(written.is_ok(), "{written:?}");
    let read: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_slice(&out);
    assert!(read.is_ok(), "{read:?}");
    out
}

/// Parses a `Range` header for content of `size` bytes: a part is within the content and not empty.
pub(super) fn range(text: &[u8], size: u64) {
    let Ok(value) = HeaderValue::from_bytes(text) else {
        return;
    };
    let headers = HeaderMap::from_iter([(header::RANGE, value)]);
    if let Range::Part { start, length } = parse(&headers, size) {
        assert!(length > 0 && start.checked_add(length).is_some_and(|end| end <= size));
    }
}

/// Fills the headers of a conditional request with the parts of `bytes` between zeros. A list that also names the served tag
/// matches, and no encoding is chosen that the client did not name.
pub(super) fn conditions(bytes: &[u8]) {
    let values = bytes.split(|byte| *byte == 0).map(HeaderValue::from_bytes);
    let mut headers: HeaderMap = HEADERS
        .into_iter()
        .zip(values)
        .filter_map(|(name, value)| Some((name, value.ok()?)))
        .collect();
    let validators = Validators {
        etag: "\"a\"".to_owned(),
        content: None,
        modified: Some(time(1_700_000_000)),
    };
    range_applies(&headers, &validators);
    if let Some(token) = token(accepted(&headers)) {
        let named = headers.get(header::ACCEPT_ENCODING);
        let named = named.and_then(|value| value.to_str().ok()).unwrap_or_default();
        assert!(named.to_ascii_lowercase().contains(token), "{named}");
    }
    let verdict = evaluate(&headers, &validators);
    if !headers.contains_key(header::IF_MATCH) && !headers.contains_key(header::IF_UNMODIFIED_SINCE) {
        assert_ne!(verdict, Verdict::Failed, "nothing is required");
    }
    headers.append(header::IF_NONE_MATCH, HeaderValue::from_static("W/\"a\""));
    let expected = match verdict {
        Verdict::Failed => Verdict::Failed,
        Verdict::Proceed | Verdict::NotModified => Verdict::NotModified,
    };
    assert_eq!(evaluate(&headers, &validators), expected);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_query_breaks_the_reader(text in ".{0,60}") {
            super::query(&text);
        }

        #[test]
        fn queries_of_known_parameters_keep_objects_whole(
            text in "((fields|exclude|schema|name)=([a-d,.+\\\\]|%[0-9a-f]{2}){0,8}&?){0,4}",
        ) {
            super::query(&text);
        }

        #[test]
        fn every_range_lies_within_its_content(
            text in "(bytes=)?[0-9]{0,21}-?[0-9 ,\\-]{0,22}",
            size in prop_oneof![0..200_u64, Just(u64::MAX)],
        ) {
            super::range(text.as_bytes(), size);
        }

        #[test]
        fn conditions_are_evaluated_for_any_headers(
            bytes in "((W/)?\"[ab]?\"|[*,;= ]|gzip|ZSTD|q=[0-9.a]{0,3}|Fri, 02 Jan 2026 03:04:05 GMT|\\x00){0,12}",
        ) {
            super::conditions(bytes.as_bytes());
        }

        #[test]
        fn no_bytes_break_the_reader_of_ranges(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            size in any::<u64>(),
        ) {
            super::range(&bytes, size);
        }
    }
}
