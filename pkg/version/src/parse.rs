//! Strict semantic versions, with the error texts of OLM's messages.
//!
//! The grammar is that of semver 2.0.0 with every number limited to 64 bits, also in the pre-release. The
//! `semver` crate could parse it too, but not say what is wrong in the words users know.

use crate::go_quote;
use crate::release::ReleaseError;
use semver::{BuildMetadata, Prerelease, Version};

/// Reason why a version cannot be read. Terminal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text is empty.
    #[error("Version string empty")]
    Empty,
    /// Fewer than three components.
    #[error("No Major.Minor.Patch elements found")]
    Components,
    /// A component holds something else than digits.
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
    /// The release that comes with the version is not one.
    #[error("error parsing release {}: {source}", go_quote(text))]
    Release {
        /// The release as written.
        text: String,
        /// Syntax error of the release. Part of the text, because upstream's sentence contains it.
        source: ReleaseError,
    },
}

/// Reads a strict semantic version: `MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]`, no leading `v`.
///
/// # Errors
/// [`ParseError`] with the text that upstream gives for the first fault, from left to right.
pub fn parse_version(text: &str) -> Result<Version, ParseError> {
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(ParseError::Components);
    };
    let major = number(major, "major", "Major")?;
    let minor = number(minor, "minor", "Minor")?;
    let (rest, build) = split_at(rest, '+');
    let (patch, pre) = split_at(rest, '-');
    let patch = number(patch, "patch", "Patch")?;
    if let Some(pre) = pre {
        pre.split('.').try_for_each(check_prerelease)?;
    }
    if let Some(build) = build {
        build.split('.').try_for_each(check_build)?;
    }
    let unreadable = |text: &str| ParseError::PrereleaseCharacter {
        text: text.to_owned(),
    };
    let pre = pre.unwrap_or_default();
    let build = build.unwrap_or_default();
    Ok(Version {
        major,
        minor,
        patch,
        pre: Prerelease::new(pre).map_err(|_| unreadable(pre))?,
        build: BuildMetadata::new(build).map_err(|_| ParseError::BuildCharacter {
            text: build.to_owned(),
        })?,
    })
}

/// Checks one pre-release identifier, which is also what a release is made of.
pub(crate) fn check_prerelease(text: &str) -> Result<(), ParseError> {
    let owned = || text.to_owned();
    if text.is_empty() {
        Err(ParseError::PrereleaseEmpty)
    } else if only_digits(text) {
        if leading_zero(text) {
            return Err(ParseError::PrereleaseLeadingZero { text: owned() });
        }
        text.parse::<u64>()
            .map(drop)
            .map_err(|_| ParseError::TooLarge { text: owned() })
    } else if text.bytes().all(identifier_byte) {
        Ok(())
    } else {
        Err(ParseError::PrereleaseCharacter { text: owned() })
    }
}

fn check_build(text: &str) -> Result<(), ParseError> {
    if text.is_empty() {
        Err(ParseError::BuildEmpty)
    } else if text.bytes().all(identifier_byte) {
        Ok(())
    } else {
        Err(ParseError::BuildCharacter {
            text: text.to_owned(),
        })
    }
}

fn number(text: &str, part: &'static str, title: &'static str) -> Result<u64, ParseError> {
    let owned = || text.to_owned();
    if text.is_empty() {
        return Err(ParseError::NoDigits { text: owned() });
    }
    if !only_digits(text) {
        return Err(ParseError::NotANumber { part, text: owned() });
    }
    if leading_zero(text) {
        return Err(ParseError::LeadingZero {
            part: title,
            text: owned(),
        });
    }
    text.parse().map_err(|_| ParseError::TooLarge { text: owned() })
}

fn split_at(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at)
        .map_or((text, None), |(before, after)| (before, Some(after)))
}

fn only_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn identifier_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'-'
}
