//! Laws of what clients send: they hold for every query and every `Range` header. The fuzz targets call them, too.

use axum::http::{HeaderMap, HeaderValue, header};

use super::project::Projection;
use super::query;
use super::range::{Range, requested};

/// An object with all shapes of values that a projection goes through.
const OBJECT: &str = r#"{"a":{"b":[{"c":1},[2],{"c":null}],"d":"x"},"b":[],"name":"n","schema":"s"}"#;

/// Reads a query, and applies what it keeps of objects: the answer is an object again, and no longer than the whole.
pub(super) fn query(text: &str) {
    let Ok(found) = query::read(Some(text)) else {
        return;
    };
    let named = [&found.filter.schema, &found.filter.package, &found.filter.name];
    assert!(named.into_iter().flatten().all(|value| !value.is_empty()));
    if let Some(projection) = found.projection {
        let kept = apply(&projection, OBJECT.as_bytes());
        assert!(kept.len() <= OBJECT.len());
        assert_eq!(apply(&projection, &kept), kept, "a second time changes nothing");
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

/// Reads a `Range` header against a content of `size` bytes: a part lies within it, and is not empty.
pub(super) fn range(text: &[u8], size: u64) {
    let Ok(value) = HeaderValue::from_bytes(text) else {
        return;
    };
    let headers = HeaderMap::from_iter([(header::RANGE, value)]);
    if let Range::Part { start, length } = requested(&headers, size) {
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
