//! Version of a bundle as it is recorded in annotations, in a status or in a catalog.

use crate::error::ParseError;
use crate::version_release::VersionRelease;
use std::fmt;
use std::sync::Arc;

/// Version of a bundle as recorded, parsed once. `Display` is the recorded version, without a separate release.
///
/// There are two spellings: without release support the release is the build metadata of the version (`1.0.0+2`), with
/// release support it is a text of its own. Values are equal if their texts are, also if they do not parse. Clones share
/// their content.
#[derive(Debug, Clone)]
pub struct BundleVersion(Arc<Record>);

#[derive(Debug)]
struct Record {
    text: String,
    release: Option<String>,
    parsed: Result<VersionRelease, ParseError>,
}

impl BundleVersion {
    /// Reads a recorded version. `release` is none if the record has no separate release, and empty if it says that the
    /// bundle has none.
    pub fn recorded(text: impl Into<String>, release: Option<String>) -> Self {
        let text = text.into();
        let parsed = match &release {
            Some(release) => VersionRelease::parse(&text, release),
            None => VersionRelease::parse_legacy(&text),
        };
        Self(Arc::new(Record {
            text,
            release,
            parsed,
        }))
    }

    /// Spells a version for a record, with a separate release if `release_support` is on.
    pub fn spelled(version: VersionRelease, release_support: bool) -> Self {
        let (text, release) = if release_support {
            let release = version.release.as_ref().map(ToString::to_string);
            (version.version.to_string(), release)
        } else {
            (version.legacy_string(), None)
        };
        Self(Arc::new(Record {
            text,
            release,
            parsed: Ok(version),
        }))
    }

    /// Returns the version as recorded, without a separate release.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the separate release as recorded, if there is one.
    pub fn release(&self) -> Option<&str> {
        self.0.release.as_deref()
    }

    /// Returns the parsed version.
    ///
    /// # Errors
    /// [`ParseError`] if the recorded version or release is invalid.
    pub fn parsed(&self) -> Result<&VersionRelease, &ParseError> {
        self.0.parsed.as_ref()
    }
}

/// An empty text, as of a record without a version.
impl Default for BundleVersion {
    fn default() -> Self {
        Self::recorded(String::new(), None)
    }
}

impl PartialEq for BundleVersion {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str() && self.release() == other.release()
    }
}

impl Eq for BundleVersion {}

/// Reads a version that is recorded without a separate release.
impl From<&str> for BundleVersion {
    fn from(text: &str) -> Self {
        Self::recorded(text, None)
    }
}

impl fmt::Display for BundleVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_read_as_they_are_written() {
        let version = VersionRelease::parse_legacy("1.0.0+2").unwrap();
        for (release_support, text, release) in [(false, "1.0.0+2", None), (true, "1.0.0", Some("2"))] {
            let spelled = BundleVersion::spelled(version.clone(), release_support);
            assert_eq!((spelled.as_str(), spelled.release()), (text, release));
            let read = BundleVersion::recorded(text, release.map(str::to_owned));
            assert_eq!(read, spelled);
            assert_eq!(read.parsed(), Ok(&version));
            assert_eq!(read.to_string(), text);
        }
        let without = VersionRelease::parse("1.0.0", "").unwrap();
        assert_eq!(BundleVersion::spelled(without, true).release(), None);
    }

    #[test]
    fn records_that_do_not_parse_keep_their_texts() {
        let broken = BundleVersion::from("v1");
        assert_eq!(broken.parsed(), Err(&ParseError::Components));
        assert_eq!(broken.to_string(), "v1");
        let release = BundleVersion::recorded("1.0.0", Some("01".to_owned()));
        assert!(matches!(release.parsed(), Err(ParseError::Release { .. })));
        assert_ne!(release, BundleVersion::from("1.0.0"), "the releases differ");
        assert_eq!(BundleVersion::default().parsed(), Err(&ParseError::Empty));
    }
}
