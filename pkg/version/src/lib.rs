//! Versions, releases and the two range grammars of OLM.
//!
//! Three grammars meet here and none can stand in for another: strict semantic versions (bundles), the
//! range of `spec.source.catalog.version` ([`VersionRange`]) and the `skipRange` of a channel entry
//! ([`SkipRange`]). Their verdicts and error texts are those that users of OLM see today.
//! Pure: no IO, no clock.

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
