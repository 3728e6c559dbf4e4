//! Version with release, which identifies and orders the bundles of a package.

use crate::error::ParseError;
use crate::parse::parse_version;
use crate::release::Release;
use semver::{BuildMetadata, Version};
use std::cmp::Ordering;
use std::fmt;

/// A version and its optional release.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VersionRelease {
    /// The version. After [`parse_legacy`](Self::parse_legacy) it has build metadata only if that is not a release.
    pub version: Version,
    /// The release; none sorts first.
    pub release: Option<Release>,
}

impl VersionRelease {
    /// Parses a version of a registry+v1 bundle: build metadata that is a valid release moves to the release. Other
    /// build metadata stays in the version, and comparisons ignore it.
    ///
    /// # Errors
    /// [`ParseError`] if the version is not strict semver.
    pub fn parse_legacy(text: &str) -> Result<Self, ParseError> {
        let mut version = parse_version(text)?;
        let release = version
            .build
            .as_str()
            .parse::<Release>()
            .ok()
            .filter(|_| !version.build.is_empty());
        if release.is_some() {
            version.build = BuildMetadata::EMPTY;
        }
        Ok(Self { version, release })
    }

    /// Parses a version and a separate release. An empty release means none; the version keeps its build metadata.
    ///
    /// # Errors
    /// [`ParseError`] if either is invalid.
    pub fn parse(version: &str, release: &str) -> Result<Self, ParseError> {
        let version = parse_version(version)?;
        let release = Release::parse_optional(release).map_err(|source| ParseError::Release {
            text: release.to_owned(),
            source,
        })?;
        Ok(Self { version, release })
    }

    /// Compares by version precedence, then release. Ignores build metadata.
    pub fn cmp_precedence(&self, other: &Self) -> Ordering {
        self.version
            .cmp_precedence(&other.version)
            .then_with(|| self.release.cmp(&other.release))
    }

    /// Returns one string with the release as build metadata (`1.0.0+2`), for status, labels and annotations without a
    /// separate release.
    pub fn legacy_string(&self) -> String {
        match &self.release {
            Some(release) => {
                let mut bare = self.version.clone();
                bare.build = BuildMetadata::EMPTY;
                format!("{bare}+{release}")
            }
            None => self.version.to_string(),
        }
    }
}

impl fmt::Display for VersionRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.legacy_string())
    }
}
