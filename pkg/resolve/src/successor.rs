//! Which bundles may follow the installed one.
//!
//! One edge is enough and edges are not followed further: an entry whose `replaces` or `skips` names the
//! installed bundle, or whose `skipRange` contains its version. A bundle of the same version and release as
//! the installed one may always stay, whatever its name.

use crate::{Installed, Trouble};
use olm_fbc::{Channel, Entry};
use olm_version::{SkipRange, VersionRelease};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The installed bundle, with its version read.
#[derive(Debug, Clone)]
pub(crate) struct From {
    name: String,
    version: VersionRelease,
}

impl From {
    /// Reads the version of what is installed.
    pub(crate) fn read(installed: &Installed) -> Result<Self, Trouble> {
        let version = match &installed.release {
            Some(release) => VersionRelease::parse(&installed.version, release),
            None => VersionRelease::parse_legacy(&installed.version),
        };
        let apart = installed.release.is_some();
        Ok(Self {
            name: installed.name.clone(),
            version: version.map_err(|source| Trouble::InstalledVersion { apart, source })?,
        })
    }

    /// Whether `version` is that of the installed bundle, release included.
    pub(crate) fn stays_at(&self, version: &VersionRelease) -> bool {
        self.version.cmp_precedence(version) == Ordering::Equal
    }

    /// The names of the bundles to which an edge of `channels` leads.
    pub(crate) fn edges<'a>(&self, channels: impl Iterator<Item = &'a Channel>) -> BTreeSet<&'a str> {
        channels
            .flat_map(|channel| &channel.entries)
            .filter(|entry| self.leads_to(entry))
            .map(|entry| entry.name.as_str())
            .collect()
    }

    fn leads_to(&self, entry: &Entry) -> bool {
        entry.replaces == self.name
            || entry.skips.contains(&self.name)
            // A range that does not parse contains nothing, as upstream has it.
            || (!entry.skip_range.is_empty()
                && entry.skip_range.parse::<SkipRange>().is_ok_and(|range| range.matches(&self.version.version)))
    }
}
