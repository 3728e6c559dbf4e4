//! Packages of catalogs as people look at them: lists, search, summaries, versions, descriptions.
//!
//! Everything is computed from the metas of a catalog, and nothing decides what is installed. Texts are untrusted: who
//! prints them escapes them.

mod installation;
mod listing;
mod metadata;
mod relevance;
mod summary;
pub mod support;
mod versions;

pub use installation::{Installation, default_namespace};
pub use listing::{Listings, PackageListing};
pub use metadata::{Link, Maintainer, Metadata, Provider};
pub use relevance::{Rank, Texts, words};
pub use summary::{ChannelSummary, PackageSummary};
pub use versions::VersionRow;
