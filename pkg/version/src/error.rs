//! Syntax errors of versions and releases. Each type can be the cause of the other.

use crate::go_quote;

/// Reason why a version cannot be parsed. Terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is empty.
    #[error("Version string empty")]
    Empty,
    /// Fewer than three components.
    #[error("No Major.Minor.Patch elements found")]
    Components,
    /// A component has characters other than digits.
    #[error("Invalid character(s) found in {part} number {}", go_quote(text))]
    NotANumber {
        /// `major`, `minor` or `patch`.
        part: &'static str,
        /// The component as written.
        text: String,
    },
    /// A component such as `01`.
    #[error("{part} number must not contain leading zeroes {}", go_quote(text))]
    LeadingZero {
        /// `Major`, `Minor` or `Patch`.
        part: &'static str,
        /// The component as written.
        text: String,
    },
    /// A component without digits.
    #[error("strconv.ParseUint: parsing {}: invalid syntax", go_quote(text))]
    NoDigits {
        /// The component as written.
        text: String,
    },
    /// A number above 18446744073709551615.
    #[error("strconv.ParseUint: parsing {}: value out of range", go_quote(text))]
    TooLarge {
        /// The number as written.
        text: String,
    },
    /// An empty pre-release identifier.
    #[error("Prerelease is empty")]
    PrereleaseEmpty,
    /// A numeric pre-release identifier such as `01`.
    #[error(
        "Numeric PreRelease version must not contain leading zeroes {}",
        go_quote(text)
    )]
    PrereleaseLeadingZero {
        /// The identifier as written.
        text: String,
    },
    /// A pre-release identifier with other characters than `[0-9A-Za-z-]`.
    #[error("Invalid character(s) found in prerelease {}", go_quote(text))]
    PrereleaseCharacter {
        /// The identifier as written.
        text: String,
    },
    /// An empty build identifier.
    #[error("Build meta data is empty")]
    BuildEmpty,
    /// A build identifier with other characters than `[0-9A-Za-z-]`.
    #[error("Invalid character(s) found in build meta data {}", go_quote(text))]
    BuildCharacter {
        /// The identifier as written.
        text: String,
    },
    /// The release of the version is invalid.
    #[error("error parsing release {}: {source}", go_quote(text))]
    Release {
        /// The release as written.
        text: String,
        /// Syntax error of the release. Part of the text, because upstream's sentence contains it.
        source: ReleaseError,
    },
}

/// Reason why a release cannot be parsed. Terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// Longer than 20 characters.
    #[error("invalid release {}: must be no longer than 20 characters", go_quote(text))]
    TooLong {
        /// The text.
        text: String,
    },
    /// An identifier is malformed.
    #[error("invalid release {}: segment {segment}: {source}", go_quote(text))]
    Segment {
        /// The whole text.
        text: String,
        /// Index of the identifier, from 0.
        segment: usize,
        /// Syntax error of the identifier. Part of the text, because upstream's sentence contains it.
        source: Box<ParseError>,
    },
}
