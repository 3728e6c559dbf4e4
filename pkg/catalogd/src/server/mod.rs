//! The content API: `/catalogs`, `/catalogs/{name}`, `/catalogs/{name}/api/v1/{all,metas,graphql}` and
//! `/openapi.json`.
//!
//! Routes, statuses and bodies are upstream's where it has them; what is better on purpose is in
//! docs/deviations.md, what is more is in docs/content-api.md. Nothing here changes content, so every replica
//! serves what it has.

mod access;
mod body;
mod compress;
mod conditional;
mod content;
mod document;
mod encoding;
mod graphql;
mod kept;
#[cfg(test)]
mod laws;
mod listen;
mod listing;
mod metrics;
mod openapi;
mod path;
mod piece;
mod project;
mod query;
mod range;
mod read;
mod reply;
mod router;

pub use access::AUDIENCE;
pub use listen::{CONNECTIONS, CONNECTIONS_PER_CLIENT, leaving, serve, traffic};
pub use metrics::Metrics;
pub use router::{Options, router, router_with};
