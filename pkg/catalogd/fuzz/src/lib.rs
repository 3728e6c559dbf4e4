//! The request parsers of olm-catalogd's content API, compiled by themselves: a build with sanitizers takes seconds
//! instead of minutes without TLS and the cluster's client. This crate replaces the storage types that they use.
#![allow(dead_code, unreachable_pub, missing_docs)]

#[path = "../../src/server/conditional.rs"]
mod conditional;
#[path = "../../src/server/encoding.rs"]
mod encoding;
mod graphql;
#[path = "../../src/server/properties.rs"]
mod properties;
#[path = "../../src/server/project.rs"]
mod project;
#[path = "../../src/server/query.rs"]
mod query;
#[path = "../../src/server/range.rs"]
mod range;

mod storage {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Encoding {
        Identity,
        Gzip,
        Zstd,
    }

    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Filter {
        pub schema: Option<String>,
        pub package: Option<String>,
        pub name: Option<String>,
    }
}

/// Checks a query of `/metas`.
pub fn any_query(text: &str) {
    properties::query(text);
}

/// Checks a `Range` header for content of `size` bytes.
pub fn any_range(text: &[u8], size: u64) {
    properties::range(text, size);
}

/// Checks the headers of a conditional request.
pub fn any_conditions(bytes: &[u8]) {
    properties::conditions(bytes);
}

/// Checks a GraphQL query.
pub fn any_graphql(text: &str) {
    graphql::any_query(text);
}

/// Checks the names of the GraphQL schema of objects, one a line.
pub fn any_schema(text: &str) {
    graphql::any_schema(text);
}
