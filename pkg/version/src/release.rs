//! Release of a bundle, which orders bundles of equal version.

use crate::error::{ParseError, ReleaseError};
use crate::parse::check_prerelease;
use semver::Prerelease;
use std::fmt;
use std::str::FromStr;

/// Maximum length of a release, in characters.
const MAX_LENGTH: usize = 20;

/// A release such as `1` or `2.rc`: identifiers joined by dots, with the order of semantic pre-releases (numbers before
/// words, shorter before longer). Has 1 to 20 characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Release(Prerelease);

impl Release {
    /// Returns the release as written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Parses a release; an empty text means none.
    ///
    /// # Errors
    /// [`ReleaseError`] if `text` is neither empty nor a release.
    pub fn parse_optional(text: &str) -> Result<Option<Self>, ReleaseError> {
        if text.is_empty() {
            Ok(None)
        } else {
            text.parse().map(Some)
        }
    }
}

impl FromStr for Release {
    type Err = ReleaseError;

    fn from_str(text: &str) -> Result<Self, ReleaseError> {
        let owned = || text.to_owned();
        if text.chars().count() > MAX_LENGTH {
            return Err(ReleaseError::TooLong { text: owned() });
        }
        for (segment, part) in text.split('.').enumerate() {
            check_prerelease(part).map_err(|source| ReleaseError::Segment {
                text: owned(),
                segment,
                source: Box::new(source),
            })?;
        }
        let wrong = |_| ReleaseError::Segment {
            text: owned(),
            segment: 0,
            source: Box::new(ParseError::PrereleaseCharacter { text: owned() }),
        };
        Prerelease::new(text).map(Self).map_err(wrong)
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
