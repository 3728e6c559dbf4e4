//! Content API: `/catalogs`, `/catalogs/{name}`, `/catalogs/{name}/api/v1/{all,metas,graphql}` and `/openapi.json`.
//!
//! Routes, statuses and bodies equal upstream's. Deliberate differences are in docs/deviations.md, additions in
//! docs/content-api.md. The server never changes content, so every replica serves what it has.

mod access;
mod body;
mod cache;
mod chunk;
mod compress;
mod conditional;
mod content;
mod document;
mod encoding;
mod graphql;
mod jobs;
mod large;
mod listen;
mod listing;
mod metrics;
mod openapi;
mod path;
mod project;
#[cfg(test)]
mod properties;
mod query;
mod range;
mod read;
mod reply;
mod router;

pub use access::AUDIENCE;
pub use listen::{CONNECTIONS, CONNECTIONS_PER_CLIENT, app, close_connections_on, serve, traffic};
pub(crate) use metrics::DESCRIPTIONS;
pub use metrics::Metrics;
pub use router::{Options, router, router_with};
