//! Properties of GraphQL queries and of inferred schemas: they hold for every text. The fuzz target checks them, too.

use std::collections::BTreeSet;

use async_graphql::parser::parse_query;

use super::shape::{Fields, Kind, Shape};
use super::{limits, names};

/// Parses a query as a request does: brackets are counted first, so that the parser never recurses deeply.
pub(super) fn query(text: &str) {
    if limits::check_brackets(text).is_err() {
        return;
    }
    if let Ok(document) = parse_query(text) {
        let _ = limits::check_document(&document);
    }
}

/// Infers the shape of objects, one a line: names are valid in GraphQL, and the order of the objects decides nothing.
pub(super) fn schema(text: &str) {
    let shape = |lines: &mut dyn Iterator<Item = &str>| {
        let mut shape = Shape::default();
        for line in lines.filter(|line| !line.is_empty()) {
            let _ = shape.add(line.as_bytes());
        }
        shape
    };
    let found = shape(&mut text.lines());
    assert_eq!(found.schemas, shape(&mut text.lines().rev()).schemas);
    let mut taken = BTreeSet::new();
    for (schema, below) in &found.schemas {
        for name in [names::type_name(schema), names::query_field(schema)] {
            assert!(is_name(&name), "{schema:?} gives {name:?}");
            assert!(is_name(&names::reserve(&name, &mut taken)));
        }
        fields(&below.fields);
    }
}

fn fields(all: &Fields) {
    for (key, kind) in all {
        let name = names::field_name(key);
        assert!(is_name(&name), "{key:?} gives {name:?}");
        if let Kind::Objects(below) = kind {
            fields(below);
        }
    }
}

/// Returns true for a name of GraphQL that introspection does not reserve.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with("__")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_query_breaks_the_limits(text in "([a-c{}()\\[\\]:\"#\n .@$!]|\\.\\.\\.|fragment A on B|query ){0,40}") {
            super::query(&text);
        }

        #[test]
        fn schemas_have_valid_names(
            text in "(\\{\"schema\":\"[a-c0-9._ä-]{0,5}\",\"[a-cA-C0-9_.-]{0,4}\":(1|2.5|null|\"x\"|\\[\\]|\\[\\{\"_0\":1\\}\\])\\}\n){0,4}",
        ) {
            super::schema(&text);
        }
    }
}
