//! The range grammar of `spec.source.catalog.version`.

use crate::VersionRelease;
use std::str::FromStr;

/// A range of versions.
#[derive(Debug, Clone)]
pub struct VersionRange {
    text: String,
}

/// Why a text is no range. None of these heals by trying again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// A part between `||` does not follow the grammar.
    #[error("improper constraint: {}", crate::go_quote(text))]
    Improper {
        /// The part.
        text: String,
    },
    /// The shape is right, a version in it is not.
    #[error("constraint parser error")]
    Version,
}

impl VersionRange {
    /// Whether `version` is inside.
    pub fn matches(&self, version: &VersionRelease) -> bool {
        self.text == version.to_string()
    }
}

impl FromStr for VersionRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        Ok(Self { text: text.to_owned() })
    }
}
