//! Strict semantic versions, with upstream's error messages.
//!
//! The grammar is semver 2.0.0, with all numbers limited to 64 bits, also in the pre-release. The `semver` crate parses
//! the same grammar, but with other error messages.

use crate::error::ParseError;
use semver::{BuildMetadata, Prerelease, Version};

/// Parses a strict semantic version: `MAJOR.MINOR.PATCH[-PRERELEASE][+BUILD]`, without a leading `v`.
///
/// # Errors
/// [`ParseError`] with upstream's message for the first fault, from left to right.
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

/// Checks a pre-release identifier; releases consist of the same identifiers.
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
