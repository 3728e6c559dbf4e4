//! Packages of catalogs as people look at them: lists, search, summaries, versions, descriptions and icons.
//!
//! Everything is computed from the metas of a catalog, and nothing decides what is installed. Texts are untrusted: who
//! prints them escapes them.

mod icon;
mod installation;
mod listing;
mod metadata;
mod profile;
mod relevance;
mod summary;
pub mod support;
mod versions;

pub use icon::Icon;
pub use installation::{Installation, default_namespace};
pub use listing::{Listings, PackageListing};
pub use metadata::{Link, Maintainer, Metadata, Provider};
pub use profile::{PackageProfile, Profiles};
pub use relevance::{Rank, Texts, words};
pub use summary::{ChannelSummary, PackageSummary};
pub use versions::VersionRow;
