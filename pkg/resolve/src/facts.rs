//! Facts about the package in one catalog that do not depend on the request. They are computed once, so that other
//! requests are cheap to try.

use crate::deprecation::deprecated_bundles;
use crate::installed_version::InstalledVersion;
use crate::{CatalogInput, Note};
use olm_fbc::{Bundle, PackageContent, VersionError};
use olm_text::name::CatalogName;
use olm_version::{SkipRange, VersionRelease};
use std::cmp::Ordering;
use std::collections::HashMap;

/// Bundle with the facts of its catalog. Channels are positions in the content's list.
pub(crate) struct Candidate<'a> {
    pub(crate) bundle: &'a Bundle,
    pub(crate) version: Result<VersionRelease, VersionError>,
    pub(crate) deprecated: bool,
    /// The channels that list it.
    pub(crate) channels: Vec<usize>,
    /// The channels that have an edge to it from the installed bundle.
    pub(crate) edges: Vec<usize>,
    /// True if the bundle has the installed bundle's version and release.
    pub(crate) stays: bool,
}

impl Candidate<'_> {
    /// Returns its version, or its name if the version does not parse.
    pub(crate) fn label(&self) -> String {
        self.version
            .as_ref()
            .map_or_else(|_| self.bundle.name.clone(), ToString::to_string)
    }

    /// Orders better bundles first: not deprecated, then higher version, then higher release; bundles without a
    /// parsable version come last.
    fn order(&self, other: &Self) -> Ordering {
        let by_version = match (&self.version, &other.version) {
            (Ok(mine), Ok(theirs)) => theirs.cmp_precedence(mine),
            (mine, theirs) => theirs.is_ok().cmp(&mine.is_ok()),
        };
        self.deprecated.cmp(&other.deprecated).then(by_version)
    }
}

/// Entry with a valid `skipRange`.
pub(crate) struct RangeEdge {
    /// Position of its channel.
    pub(crate) channel: usize,
    /// Position of its bundle in [`CatalogFacts::bundles`].
    pub(crate) to: usize,
    pub(crate) range: SkipRange,
    /// Bytes of the range as written: a bound of the time that a test of a version against it takes.
    pub(crate) size: usize,
}

/// Catalog that has the package.
pub(crate) struct CatalogFacts<'a> {
    pub(crate) catalog: &'a CatalogInput,
    pub(crate) content: &'a PackageContent,
    /// Position of the catalog in the input.
    pub(crate) position: usize,
    /// Every bundle, best first.
    pub(crate) bundles: Vec<Candidate<'a>>,
    /// Positions in [`CatalogFacts::bundles`] by name.
    pub(crate) by_name: HashMap<&'a str, usize>,
    pub(crate) ranges: Vec<RangeEdge>,
    /// Defects of the content.
    pub(crate) notes: Vec<Note>,
}

impl<'a> CatalogFacts<'a> {
    pub(crate) fn new(
        catalog: &'a CatalogInput,
        content: &'a PackageContent,
        position: usize,
        installed: Option<InstalledVersion<'_>>,
        release_support: bool,
    ) -> Self {
        let deprecated = deprecated_bundles(content);
        let candidate = |bundle: &'a Bundle| {
            let version = bundle.version_release(release_support);
            Candidate {
                bundle,
                deprecated: deprecated.contains(bundle.name.as_str()),
                channels: Vec::new(),
                edges: Vec::new(),
                stays: installed.is_some_and(|installed| {
                    version.as_ref().is_ok_and(|version| installed.stays_at(version))
                }),
                version,
            }
        };
        let mut bundles: Vec<_> = content.bundles.iter().map(candidate).collect();
        bundles.sort_by(Candidate::order);
        let by_name = bundles
            .iter()
            .enumerate()
            .map(|(at, candidate)| (candidate.bundle.name.as_str(), at))
            .collect();
        let mut facts = Self {
            catalog,
            content,
            position,
            bundles,
            by_name,
            ranges: Vec::new(),
            notes: Vec::new(),
        };
        facts.read_channels(installed);
        facts
    }

    fn read_channels(&mut self, installed: Option<InstalledVersion<'_>>) {
        for (channel, listed) in self.content.channels.iter().enumerate() {
            for entry in &listed.entries {
                let range = match entry.skip_range.as_str() {
                    "" => None,
                    text => match text.parse::<SkipRange>() {
                        Ok(range) => Some(range),
                        // The range matches nothing, like upstream, but is probably a mistake.
                        Err(error) => {
                            self.notes.push(Note::UnreadableSkipRange {
                                catalog: self.catalog.name.clone(),
                                channel: listed.name.clone(),
                                entry: entry.name.clone().into(),
                                range: text.to_owned(),
                                reason: error.to_string(),
                            });
                            None
                        }
                    },
                };
                let to = self.by_name.get(entry.name.as_str()).copied();
                let Some((to, candidate)) = to.and_then(|to| Some((to, self.bundles.get_mut(to)?))) else {
                    continue;
                };
                if candidate.channels.last() != Some(&channel) {
                    candidate.channels.push(channel);
                }
                if candidate.edges.last() != Some(&channel)
                    && installed.is_some_and(|installed| installed.leads_to(entry, range.as_ref()))
                {
                    candidate.edges.push(channel);
                }
                if let Some(range) = range {
                    let size = entry.skip_range.as_str().len();
                    self.ranges.push(RangeEdge {
                        channel,
                        to,
                        range,
                        size,
                    });
                }
            }
        }
    }

    /// The catalog's name.
    pub(crate) fn name(&self) -> &'a CatalogName {
        &self.catalog.name
    }

    /// Returns the names of channels by position.
    pub(crate) fn channel_names<'s>(&'s self, channels: &'s [usize]) -> impl Iterator<Item = &'a str> + 's {
        channels
            .iter()
            .filter_map(|at| Some(self.content.channels.get(*at)?.name.as_str()))
    }
}
