//! Successors of the installed bundle.
//!
//! A single edge suffices, and edges are not followed further: an entry whose `replaces` or `skips` names the installed
//! bundle, or whose `skipRange` contains its version. A bundle with the same version and release as the installed one
//! may always stay, whatever its name.

use crate::{FailureCause, Installed};
use olm_fbc::Entry;
use olm_version::{SkipRange, VersionRelease};
use std::cmp::Ordering;

/// Installed bundle whose version is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InstalledVersion<'a> {
    name: &'a str,
    version: &'a VersionRelease,
}

impl<'a> InstalledVersion<'a> {
    /// Returns the installed bundle, unless its version is invalid.
    pub(crate) fn of(installed: &'a Installed) -> Result<Self, FailureCause> {
        let version = installed.version.parsed();
        Ok(Self {
            name: &installed.name,
            version: version.map_err(|source| FailureCause::InstalledVersion {
                separate_release: installed.version.release().is_some(),
                source: source.clone(),
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
            || entry.skips.iter().any(|skipped| skipped == self.name)
            || range.is_some_and(|range| range.matches(&self.version.version))
    }
}
