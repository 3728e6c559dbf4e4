//! The readers of olm-catalogd's content API, compiled by themselves: without TLS and the cluster's client a build with
//! sanitizers takes seconds instead of minutes. What they use of the storage is stood in for here.
#![allow(dead_code, unreachable_pub, missing_docs)]

#[path = "../../src/server/laws.rs"]
mod laws;
#[path = "../../src/server/project.rs"]
mod project;
#[path = "../../src/server/query.rs"]
mod query;
#[path = "../../src/server/range.rs"]
mod range;

mod storage {
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Filter {
        pub schema: Option<String>,
        pub package: Option<String>,
        pub name: Option<String>,
    }
}

/// Looks at a query of `/metas`.
pub fn any_query(text: &str) {
    laws::query(text);
}

/// Looks at a `Range` header against a content of `size` bytes.
pub fn any_range(text: &[u8], size: u64) {
    laws::range(text, size);
}
