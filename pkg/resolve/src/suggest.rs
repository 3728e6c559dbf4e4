//! Search for the smallest change of the spec that makes the resolution choose a wanted version.
//!
//! Every combination of changes that could matter for a wanted bundle is tried on the known facts, the smallest first.
//! The result is sound, because it was tried, and minimal, because all smaller combinations were tried before.

use crate::choose::{choose, dependency, installable};
use crate::facts::{Candidate, CatalogFacts};
use crate::known_catalogs::KnownCatalogs;
use crate::parsed_request::ParsedRequest;
use crate::{CatalogInput, Change, Request};
use olm_version::{RequestedRange, VersionRelease};

/// Maximum number of bundles for which changes are tried.
const MAX_TARGETS: usize = 32;
/// Maximum number of channels to try for one bundle.
const MAX_CHANNELS: usize = 4;

/// Returns the smallest change by which [`resolve`](crate::resolve) chooses the version `wanted` (or the bundle of that
/// name; any if none). Empty if it does so already, none if no change of the spec suffices.
///
/// Among equally small changes, one that keeps the upgrade graph and the catalog is preferred. [`Change::WaitFor`]
/// alone means that only a catalog that cannot be read may have the version.
pub fn suggest(request: &Request, catalogs: &[CatalogInput], wanted: Option<&str>) -> Option<Vec<Change>> {
    within(&KnownCatalogs::new(request, catalogs), request, wanted)
}

/// Returns the smallest change that helps, from facts that are already computed.
pub(crate) fn within(
    known: &KnownCatalogs<'_>,
    request: &Request,
    wanted: Option<&str>,
) -> Option<Vec<Change>> {
    let wanted = Target::new(wanted);
    if succeeds(known, request, &[], &wanted) {
        return Some(Vec::new());
    }
    let targets = targets(known, request, &wanted);
    let mut plans: Vec<(Vec<Change>, (&CatalogFacts<'_>, &Candidate<'_>))> = targets
        .iter()
        .flat_map(|&(facts, candidate)| {
            let plans = plans(known, request, facts, candidate).into_iter();
            plans.map(move |plan| (plan, (facts, candidate)))
        })
        .filter(|(plan, _)| !plan.is_empty())
        .collect();
    plans.sort_by_key(|(plan, _)| (plan.len(), plan.iter().map(Change::weight).sum::<usize>()));
    let enough = |plan: &[Change]| succeeds(known, request, plan, &wanted);
    let found = plans
        .into_iter()
        .find(|(plan, target)| suits(request, plan, *target) && enough(plan));
    if let Some((plan, _)) = found {
        // Another bundle may need fewer changes than the one for which the suggestion was made.
        let smaller = parts(&plan).into_iter().find(|part| enough(part));
        return Some(smaller.unwrap_or(plan));
    }
    let unread = known.unread.first()?;
    let catalog = unread.catalog.name.clone();
    Some(vec![Change::WaitFor { catalog }])
}

/// Bundle that the suggested changes should lead to.
enum Target<'a> {
    Anything,
    Version {
        text: &'a str,
        version: Option<VersionRelease>,
    },
}

impl<'a> Target<'a> {
    fn new(text: Option<&'a str>) -> Self {
        text.map_or(Self::Anything, |text| Self::Version {
            text,
            version: VersionRelease::parse_legacy(text).ok(),
        })
    }

    /// Returns true if `candidate` is wanted. A version without a release stands for any of its releases.
    fn is(&self, candidate: &Candidate<'_>) -> bool {
        let Self::Version { text, version } = self else {
            return true;
        };
        let same = |wanted: &VersionRelease, found: &VersionRelease| {
            wanted.version.cmp_precedence(&found.version).is_eq()
                && (wanted.release.is_none() || wanted.release == found.release)
        };
        candidate.bundle.name == *text
            || version
                .as_ref()
                .zip(candidate.version.as_ref().ok())
                .is_some_and(|(wanted, found)| same(wanted, found))
    }
}

/// Returns true if the resolution with `changes` chooses the wanted bundle.
fn succeeds(known: &KnownCatalogs<'_>, request: &Request, changes: &[Change], wanted: &Target<'_>) -> bool {
    let mut amended = request.clone();
    for change in changes {
        change.amend(&mut amended);
    }
    let Ok(parsed) = ParsedRequest::new(&amended, changes.iter().find_map(Change::only)) else {
        return false;
    };
    choose(known, &parsed).is_ok_and(|choice| {
        installable(known, &choice, &amended).is_ok_and(|found| wanted.is(found.candidate))
    })
}

/// Returns true if the rules admit the target with `changes`. Cheaper than a whole resolution.
fn suits(
    request: &Request,
    changes: &[Change],
    (facts, candidate): (&CatalogFacts<'_>, &Candidate<'_>),
) -> bool {
    let mut amended = request.clone();
    for change in changes {
        change.amend(&mut amended);
    }
    ParsedRequest::new(&amended, None).is_ok_and(|parsed| parsed.query(facts).rule(candidate).is_none())
}

/// Returns all proper subsets of `changes`, the smallest first.
fn parts(changes: &[Change]) -> Vec<Vec<Change>> {
    let whole = (1_usize << changes.len()) - 1;
    let part = |chosen: usize| {
        let kept = changes
            .iter()
            .enumerate()
            .filter(|(at, _)| chosen & (1 << at) != 0);
        kept.map(|(_, change)| change.clone()).collect::<Vec<_>>()
    };
    let mut parts: Vec<_> = (1..whole).map(part).collect();
    parts.sort_by_key(Vec::len);
    parts
}

/// Returns the possible bundles, those that need the fewest changes first.
fn targets<'f, 'a>(
    known: &'f KnownCatalogs<'a>,
    request: &Request,
    wanted: &Target<'_>,
) -> Vec<(&'f CatalogFacts<'a>, &'f Candidate<'a>)> {
    let parsed = ParsedRequest::new(request, None).ok();
    let home = parsed.as_ref().and_then(|parsed| known.home(parsed));
    let mut targets = Vec::new();
    for facts in &known.facts {
        let query = parsed.as_ref().map(|parsed| parsed.query(facts));
        let fits = |candidate: &&Candidate<'a>| {
            let refused = dependency(request.selection, &candidate.bundle.properties).is_some();
            candidate.version.is_ok() && !refused && wanted.is(candidate)
        };
        for candidate in facts.bundles.iter().filter(fits) {
            let unmet = query.as_ref().map_or(1, |query| {
                let unmet = [
                    !query.in_channels(candidate),
                    !query.in_range(candidate),
                    !query.may_follow(candidate),
                ];
                unmet.into_iter().filter(|unmet| *unmet).count()
            });
            let away = home.is_some_and(|home| home != facts.name());
            targets.push(((unmet, away), (facts, candidate)));
        }
    }
    targets.sort_by_key(|(order, _)| *order);
    targets.truncate(MAX_TARGETS);
    targets.into_iter().map(|(_, target)| target).collect()
}

/// Returns the combinations of changes that could lead to `candidate`, by size, then by preference.
fn plans(
    known: &KnownCatalogs<'_>,
    request: &Request,
    facts: &CatalogFacts<'_>,
    candidate: &Candidate<'_>,
) -> Vec<Vec<Change>> {
    let mut plans = Vec::new();
    let version = candidate
        .version
        .as_ref()
        .ok()
        .map(|version| RequestedRange::exactly(&version.version))
        .filter(|range| request.range.as_ref() != Some(range));
    let version = version.map(|range| Change::Version { range });
    let certified = (request.installed.is_some() && !request.self_certified).then_some(Change::SelfCertified);
    let several = known.facts.len() + known.without.len() + known.unread.len() > 1;
    let select = several.then(|| Change::SelectCatalog {
        catalog: facts.name().clone(),
    });
    let channels: Vec<Option<Change>> = std::iter::once(None)
        .chain(channels(request, facts, candidate).into_iter().map(Some))
        .collect();
    for certified in [None, certified].into_iter().filter(distinct()) {
        for select in [None, select.clone()].into_iter().filter(distinct()) {
            for channel in &channels {
                for version in [None, version.clone()].into_iter().filter(distinct()) {
                    let plan = [version, channel.clone(), select.clone(), certified.clone()];
                    plans.push(plan.into_iter().flatten().collect());
                }
            }
        }
    }
    plans
}

/// Returns a filter that passes each change, and none, once.
fn distinct() -> impl FnMut(&Option<Change>) -> bool {
    let mut none = false;
    move |change| change.is_some() || !std::mem::replace(&mut none, true)
}

/// Returns the changes to channels that show `candidate`: those with an edge to it first, then by name.
fn channels(request: &Request, facts: &CatalogFacts<'_>, candidate: &Candidate<'_>) -> Vec<Change> {
    let with_edge: Vec<&str> = facts.channel_names(&candidate.edges).collect();
    let without = facts.channel_names(&candidate.channels);
    let without = without.filter(|name| !with_edge.contains(name));
    let names: Vec<String> = with_edge
        .iter()
        .copied()
        .chain(without)
        .take(MAX_CHANNELS)
        .map(ToOwned::to_owned)
        .collect();
    let mut changes = Vec::new();
    if !request.channels.is_empty() {
        let new = names.iter().filter(|name| !request.channels.contains(name));
        changes.extend(new.map(|channel| Change::AddChannel {
            channel: channel.clone(),
        }));
    }
    changes.extend(names.into_iter().map(|channel| Change::SetChannel { channel }));
    if !request.channels.is_empty() {
        changes.push(Change::AnyChannel);
    }
    changes
}

#[cfg(test)]
mod tests;
