//! A version together with its release: what identifies and orders the bundles of a package.

use crate::error::ParseError;
use crate::parse::parse_version;
use crate::release::Release;
use semver::{BuildMetadata, Version};
use std::cmp::Ordering;
use std::fmt;

/// A version and, where there is one, its release.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VersionRelease {
    /// The version. With [`parse_legacy`](Self::parse_legacy) it has build metadata only when that is no
    /// release.
    pub version: Version,
    /// The release; unset sorts before any.
    pub release: Option<Release>,
}

impl VersionRelease {
    /// Reads a version the way of registry+v1 bundles: build metadata that reads as a release is the release
    /// and leaves the version; any other stays build metadata, which no comparison looks at.
    ///
    /// # Errors
    /// [`ParseError`] when the version is not strict semver.
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

    /// Reads a version and a release given apart; an empty release means none and the version keeps its
    /// build metadata.
    ///
    /// # Errors
    /// [`ParseError`] when either does not read.
    pub fn parse(version: &str, release: &str) -> Result<Self, ParseError> {
        let version = parse_version(version)?;
        let release = Release::parse_optional(release).map_err(|source| ParseError::Release {
            text: release.to_owned(),
            source,
        })?;
        Ok(Self { version, release })
    }

    /// Order by version precedence, then release. Build metadata does not count.
    pub fn cmp_precedence(&self, other: &Self) -> Ordering {
        self.version
            .cmp_precedence(&other.version)
            .then_with(|| self.release.cmp(&other.release))
    }

    /// The one-string form in which the release is written as build metadata (`1.0.0+2`), as in status,
    /// labels and annotations where releases are not supported on their own.
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
