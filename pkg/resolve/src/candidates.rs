//! The bundles of one catalog: which are suitable, and in what order.

use crate::deprecation::deprecated_bundles;
use crate::successor::From;
use crate::{CandidateVerdict, CatalogInput, Request, Rule, Trouble};
use olm_fbc::{Bundle, PackageContent, VersionError};
use olm_version::{VersionRange, VersionRelease};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// What every catalog is asked, with all texts read.
pub(crate) struct Question<'a> {
    pub(crate) request: &'a Request,
    pub(crate) range: Option<VersionRange>,
}

impl<'a> Question<'a> {
    pub(crate) fn new(request: &'a Request) -> Result<Self, Trouble> {
        let range = match request.version.as_deref() {
            None | Some("") => None,
            Some(range) => Some(range.parse().map_err(|source| Trouble::Range {
                range: range.to_owned(),
                source,
            })?),
        };
        Ok(Self { request, range })
    }

    /// What a bundle must follow; none when anything may come next.
    pub(crate) fn from(&self) -> Result<Option<From>, Trouble> {
        let installed = self
            .request
            .installed
            .as_ref()
            .filter(|_| !self.request.self_certified);
        installed.map(From::read).transpose()
    }
}

/// A bundle with what the rules say of it.
#[expect(
    clippy::struct_excessive_bools,
    reason = "one independent verdict for each rule"
)]
pub(crate) struct Candidate<'a> {
    pub(crate) bundle: &'a Bundle,
    pub(crate) version: Result<VersionRelease, VersionError>,
    pub(crate) deprecated: bool,
    pub(crate) in_channels: bool,
    pub(crate) in_range: bool,
    pub(crate) may_follow: bool,
}

impl Candidate<'_> {
    /// The first rule that rules it out.
    pub(crate) fn rule(&self) -> Option<Rule> {
        if !self.in_channels {
            Some(Rule::NotInChannels)
        } else if !self.in_range {
            Some(Rule::OutOfRange)
        } else if !self.may_follow {
            Some(Rule::NotSuccessor)
        } else {
            None
        }
    }

    /// Better first: not deprecated, then higher version, then higher release, then those without a
    /// readable version.
    fn order(&self, other: &Self) -> Ordering {
        let by_version = match (&self.version, &other.version) {
            (Ok(mine), Ok(theirs)) => theirs.cmp_precedence(mine),
            (mine, theirs) => theirs.is_ok().cmp(&mine.is_ok()),
        };
        self.deprecated.cmp(&other.deprecated).then(by_version)
    }
}

/// A catalog that has the package, with its bundles judged.
pub(crate) struct Judged<'a> {
    pub(crate) catalog: &'a CatalogInput,
    pub(crate) content: &'a PackageContent,
    /// Every bundle, best first.
    pub(crate) candidates: Vec<Candidate<'a>>,
}

impl<'a> Judged<'a> {
    pub(crate) fn new(
        question: &Question<'_>,
        from: Option<&From>,
        catalog: &'a CatalogInput,
        content: &'a PackageContent,
    ) -> Self {
        let request = question.request;
        let any_channel = request.channels.is_empty();
        // The requested channels limit the edges as well as the bundles.
        let visible = || {
            content
                .channels
                .iter()
                .filter(|channel| any_channel || request.channels.contains(&channel.name))
        };
        let listed: BTreeSet<&str> = visible()
            .flat_map(|channel| &channel.entries)
            .map(|entry| entry.name.as_str())
            .collect();
        let edges = from.map(|from| from.edges(visible()));
        let deprecated = deprecated_bundles(content);
        let judge = |bundle: &'a Bundle| {
            let version = bundle.version_release(request.release_support);
            let stays = |from: &From| version.as_ref().is_ok_and(|version| from.stays_at(version));
            let in_range = question
                .range
                .as_ref()
                .is_none_or(|range| version.as_ref().is_ok_and(|version| range.matches(version)));
            Candidate {
                bundle,
                deprecated: deprecated.contains(bundle.name.as_str()),
                in_channels: any_channel || listed.contains(bundle.name.as_str()),
                in_range,
                may_follow: edges
                    .as_ref()
                    .is_none_or(|edges| edges.contains(bundle.name.as_str()))
                    || from.is_some_and(stays),
                version,
            }
        };
        let mut candidates: Vec<_> = content.bundles.iter().map(judge).collect();
        candidates.sort_by(Candidate::order);
        Self {
            catalog,
            content,
            candidates,
        }
    }

    /// The catalog's name.
    pub(crate) fn name(&self) -> &'a str {
        &self.catalog.name
    }

    /// The best suitable bundle.
    pub(crate) fn best(&self) -> Option<&Candidate<'a>> {
        self.candidates
            .iter()
            .find(|candidate| candidate.rule().is_none())
    }

    /// What came of every bundle.
    pub(crate) fn verdicts(&self) -> Vec<CandidateVerdict> {
        let best = self.best();
        let lost = |candidate: &Candidate<'_>| {
            let best = best.filter(|best| !std::ptr::eq(best.bundle, candidate.bundle))?;
            Some(if candidate.deprecated && !best.deprecated {
                Rule::Deprecated
            } else {
                Rule::Lower
            })
        };
        self.candidates
            .iter()
            .map(|candidate| CandidateVerdict {
                bundle: candidate.bundle.name.clone(),
                version: candidate.version.as_ref().ok().map(ToString::to_string),
                ruled_out: candidate.rule().or_else(|| lost(candidate)),
            })
            .collect()
    }
}
