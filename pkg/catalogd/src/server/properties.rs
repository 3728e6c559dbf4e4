//! Properties of the parsers of requests: they hold for every query and every `Range` header. The fuzz targets check
//! them, too.

use axum::http::{HeaderMap, HeaderValue, header};

use super::project::Projection;
use super::query;
use super::range::{Range, parse};

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
        let cache = apply(&projection, OBJECT.as_bytes());
        assert!(cache.len() <= OBJECT.len());
        assert_eq!(apply(&projection, &cache), cache, "a second time changes nothing");
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
        fn no_bytes_break_the_reader_of_ranges(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            size in any::<u64>(),
        ) {
            super::range(&bytes, size);
        }
    }
}
