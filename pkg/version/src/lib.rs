//! Versions, releases and the two range grammars of OLM.
//!
//! OLM has three grammars: strict semantic versions of bundles ([`parse_version`]), the range of
//! `spec.source.catalog.version` ([`VersionRange`]) and the `skipRange` of a channel entry ([`SkipRange`]). Results and
//! error messages are upstream's. [`BundleVersion`] and [`RequestedRange`] carry a version and a range through the
//! product, with their texts as written. The crate does no IO and reads no clock.

mod bundle_version;
mod error;
mod minor_version;
mod parse;
mod quote;
mod range;
mod release;
mod requested_range;
mod skip_range;
mod version_release;

pub use bundle_version::BundleVersion;
pub use error::{ParseError, ReleaseError};
pub use minor_version::{MinorVersion, MinorVersionError};
pub use parse::parse_version;
pub use quote::go_quote;
pub use range::{RangeError, VersionRange};
pub use release::Release;
pub use requested_range::RequestedRange;
pub use semver::Version;
pub use skip_range::{SkipRange, SkipRangeError};
pub use version_release::VersionRelease;
