//! Valid request, and the result of each rule for a bundle.

use crate::facts::{Candidate, CatalogFacts};
use crate::installed_version::InstalledVersion;
use crate::{FailureCause, Request, Rule};
use olm_text::name::CatalogName;
use olm_version::{RequestedRange, VersionRange};

/// Request whose range is valid.
pub(crate) struct ParsedRequest<'a> {
    pub(crate) request: &'a Request,
    pub(crate) range: Option<&'a VersionRange>,
    /// The only catalog to consider; none for all.
    pub(crate) only: Option<&'a CatalogName>,
}

impl<'a> ParsedRequest<'a> {
    pub(crate) fn new(request: &'a Request, only: Option<&'a CatalogName>) -> Result<Self, FailureCause> {
        let valid = |range: &'a RequestedRange| {
            range.parsed().map_err(|source| FailureCause::Range {
                range: range.to_string(),
                source: source.clone(),
            })
        };
        let range = request.range.as_ref().map(valid).transpose()?;
        Ok(Self { request, range, only })
    }

    /// Returns the bundle that the choice must succeed; none if any bundle may follow.
    pub(crate) fn installed_version(&self) -> Result<Option<InstalledVersion<'a>>, FailureCause> {
        let installed = self
            .request
            .installed
            .as_ref()
            .filter(|_| !self.request.self_certified);
        installed.map(InstalledVersion::of).transpose()
    }

    /// Returns true if the selector matches the catalog `name`.
    pub(crate) fn selects(&self, name: &CatalogName) -> bool {
        self.only.is_none_or(|only| only == name)
    }

    /// Returns the request to one catalog.
    pub(crate) fn query<'q>(&'q self, facts: &CatalogFacts<'_>) -> CatalogQuery<'q> {
        let wanted = &self.request.channels;
        let visible = || {
            let channels = facts.content.channels.iter();
            channels.map(|channel| wanted.contains(&channel.name)).collect()
        };
        CatalogQuery {
            visible: (!wanted.is_empty()).then(visible),
            range: self.range,
            anything_follows: self.request.self_certified || self.request.installed.is_none(),
        }
    }
}

/// Request to one catalog.
pub(crate) struct CatalogQuery<'q> {
    /// Requested channels of the catalog; none for all. They limit edges and bundles alike.
    visible: Option<Vec<bool>>,
    range: Option<&'q VersionRange>,
    anything_follows: bool,
}

impl CatalogQuery<'_> {
    /// Returns true if the request names the channel at `position`, or no channel at all.
    pub(crate) fn sees(&self, position: usize) -> bool {
        self.visible
            .as_ref()
            .is_none_or(|visible| visible.get(position).copied().unwrap_or_default())
    }

    fn sees_any(&self, positions: &[usize]) -> bool {
        positions.iter().any(|at| self.sees(*at))
    }

    pub(crate) fn in_channels(&self, candidate: &Candidate<'_>) -> bool {
        self.visible.is_none() || self.sees_any(&candidate.channels)
    }

    pub(crate) fn in_range(&self, candidate: &Candidate<'_>) -> bool {
        self.range.is_none_or(|range| {
            candidate
                .version
                .as_ref()
                .is_ok_and(|version| range.matches(version))
        })
    }

    pub(crate) fn may_follow(&self, candidate: &Candidate<'_>) -> bool {
        self.anything_follows || candidate.stays || self.sees_any(&candidate.edges)
    }

    /// Returns the first rule that excludes the candidate.
    pub(crate) fn rule(&self, candidate: &Candidate<'_>) -> Option<Rule> {
        if !self.in_channels(candidate) {
            Some(Rule::NotInChannels)
        } else if !self.in_range(candidate) {
            Some(Rule::OutOfRange)
        } else if !self.may_follow(candidate) {
            Some(Rule::NotSuccessor)
        } else {
            None
        }
    }

    /// Returns the position of the best suitable bundle in [`CatalogFacts::bundles`].
    pub(crate) fn best(&self, facts: &CatalogFacts<'_>) -> Option<usize> {
        facts
            .bundles
            .iter()
            .position(|candidate| self.rule(candidate).is_none())
    }
}
