//! The content API: `/catalogs/{name}/api/v1/{all,metas}`.
//!
//! Routes, statuses and bodies are upstream's; what is better on purpose is in docs/deviations.md.
//! Nothing here changes content, so every replica serves what it has.

mod body;
mod conditional;
mod content;
mod encoding;
mod listen;
mod metrics;
mod path;
mod query;
mod range;
mod reply;
mod router;

pub use listen::serve;
pub use metrics::Metrics;
pub use router::router;
