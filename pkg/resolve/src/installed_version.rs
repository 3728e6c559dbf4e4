//! Successors of the installed bundle.
//!
//! A single edge suffices, and edges are not followed further: an entry whose `replaces` or `skips` names the installed
//! bundle, or whose `skipRange` contains its version. A bundle with the same version and release as the installed one
//! may always stay, whatever its name.

use crate::{FailureCause, Installed};
use olm_fbc::Entry;
use olm_version::{SkipRange, VersionRelease};
use std::cmp::Ordering;

/// Installed bundle with its parsed version.
#[derive(Debug, Clone)]
pub(crate) struct InstalledVersion {
    pub(crate) name: String,
    version: VersionRelease,
}

impl InstalledVersion {
    /// Parses the version of the installed bundle.
    pub(crate) fn read(installed: &Installed) -> Result<Self, FailureCause> {
        let version = match &installed.release {
            Some(release) => VersionRelease::parse(&installed.version, release),
            None => VersionRelease::parse_legacy(&installed.version),
        };
        let separate_release = installed.release.is_some();
        Ok(Self {
            name: installed.name.clone(),
            version: version.map_err(|source| FailureCause::InstalledVersion {
                separate_release,
                source,
            })?,
        })
    }

    /// Returns true if `version` is the installed bundle's version, release included.
    pub(crate) fn stays_at(&self, version: &VersionRelease) -> bool {
        self.version.cmp_precedence(version) == Ordering::Equal
    }

    /// Returns true if `entry`, whose `skipRange` is `range`, has an edge from the installed bundle.
    pub(crate) fn leads_to(&self, entry: &Entry, range: Option<&SkipRange>) -> bool {
        entry.replaces == self.name
            || entry.skips.contains(&self.name)
            || range.is_some_and(|range| range.matches(&self.version.version))
    }
}
