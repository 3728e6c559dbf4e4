//! Versions, releases and the two range grammars of OLM.
//!
//! OLM has three grammars: strict semantic versions of bundles ([`parse_version`]), the range of
//! `spec.source.catalog.version` ([`VersionRange`]) and the `skipRange` of a channel entry ([`SkipRange`]). Results and
//! error messages are upstream's. The crate does no IO and reads no clock.

mod error;
mod parse;
mod quote;
mod range;
mod release;
mod skip_range;
mod version_release;

pub use error::{ParseError, ReleaseError};
pub use parse::parse_version;
pub use quote::go_quote;
pub use range::{RangeError, VersionRange};
pub use release::Release;
pub use semver::Version;
pub use skip_range::{SkipRange, SkipRangeError};
pub use version_release::VersionRelease;
