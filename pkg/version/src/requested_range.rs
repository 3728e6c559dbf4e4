//! Range of `spec.source.catalog.version` as it is written.

use crate::bundle_version::BundleVersion;
use crate::range::{RangeError, VersionRange};
use semver::{BuildMetadata, Version};
use std::fmt;

/// Range of versions that a spec asks for, as written, parsed once. `Display` is the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedRange {
    text: String,
    parsed: Result<VersionRange, RangeError>,
}

impl RequestedRange {
    /// Reads a range; none for an empty text, which asks for nothing.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty()).then(|| Self::parse(text))
    }

    /// Returns the range that contains only `version`. Ranges ignore releases and build metadata.
    pub fn exactly(version: &Version) -> Self {
        let mut bare = version.clone();
        bare.build = BuildMetadata::EMPTY;
        Self::parse(bare.to_string())
    }

    fn parse(text: String) -> Self {
        let parsed = text.parse();
        Self { text, parsed }
    }

    /// Returns the range as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the parsed range.
    ///
    /// # Errors
    /// [`RangeError`] if the text is no range.
    pub fn parsed(&self) -> Result<&VersionRange, &RangeError> {
        self.parsed.as_ref()
    }

    /// Returns true if the range contains `version`; false if one of them does not parse.
    pub fn admits(&self, version: &BundleVersion) -> bool {
        self.parsed()
            .is_ok_and(|range| version.parsed().is_ok_and(|version| range.matches(version)))
    }
}

impl fmt::Display for RequestedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_and_ranges_that_parse_are_admitted() {
        let admits = |range: &str, version: &str| {
            let range = RequestedRange::new(range).unwrap();
            range.admits(&BundleVersion::from(version))
        };
        assert!(admits("1.x", "1.2.3+4"));
        assert!(!admits("1.x", "2.0.0"));
        assert!(!admits("1.x", "v1"));
        assert!(!admits("no range", "1.2.3"));
        assert_eq!(RequestedRange::new(""), None);
    }

    #[test]
    fn a_version_is_the_only_one_in_its_own_range() {
        let only = RequestedRange::exactly(&crate::parse_version("1.2.3-rc.1+5").unwrap());
        assert_eq!(only.as_str(), "1.2.3-rc.1");
        assert!(only.admits(&"1.2.3-rc.1+6".into()) && !only.admits(&"1.2.3".into()));
    }
}
