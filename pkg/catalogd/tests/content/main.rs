//! The content API as clients see it: over sockets, by its `OpenAPI` document, and by the examples of its
//! documentation.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_collect,
    clippy::too_many_lines,
    reason = "a test stops at the first surprise"
)]

mod docs;
mod graphql;
mod openapi;
mod replicas;
mod served;
mod sockets;
