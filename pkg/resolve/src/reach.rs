//! Bundles reachable from the installed one, and the number of upgrades to each.

use crate::facts::CatalogFacts;
use crate::parsed_request::CatalogQuery;
use std::collections::{HashMap, VecDeque};

/// Maximum cost of tests of a version against a `skipRange`. A graph of ranges can require the square of its entries, and a range has any
/// number of comparators; bundles beyond the limit count as unreachable. Real packages cost less than 100,000.
const MAX_COST: usize = 2_000_000;
/// Bytes of a range that cost 1: a usual one, such as `>=1.0.0 <1.2.3`.
const USUAL_SIZE: usize = 16;

/// Last upgrade on the shortest path to a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathStep {
    /// Minimum number of upgrades to the bundle.
    pub(crate) count: usize,
    /// Position of the predecessor; none for a direct successor.
    pub(crate) via: Option<usize>,
}

/// Returns a shortest path to every bundle of `facts` through the channels that `query` shows, by position; all none if
/// no bundle is installed. `installed` is the name of the installed bundle.
pub(crate) fn steps(
    facts: &CatalogFacts<'_>,
    query: &CatalogQuery<'_>,
    installed: Option<&str>,
) -> Vec<Option<PathStep>> {
    let mut steps = vec![None; facts.bundles.len()];
    let Some(installed) = installed else {
        return steps;
    };
    let mut queue = VecDeque::new();
    for (at, candidate) in facts.bundles.iter().enumerate() {
        let count = usize::from(candidate.bundle.name != installed);
        let here = query.in_channels(candidate);
        if here
            && (candidate.stays || count == 0 || candidate.edges.iter().any(|channel| query.sees(*channel)))
        {
            set(&mut steps, at, PathStep { count, via: None });
            queue.push_back(at);
        }
    }
    if queue.is_empty() {
        return steps;
    }
    let successors = successors(facts, query);
    let mut ranges: Vec<_> = facts
        .ranges
        .iter()
        .filter(|edge| query.sees(edge.channel))
        .collect();
    let mut cost = 0_usize;
    while let Some(at) = queue.pop_front() {
        let (Some(Some(step)), Some(candidate)) = (steps.get(at).copied(), facts.bundles.get(at)) else {
            continue;
        };
        let next = PathStep {
            count: step.count + 1,
            via: Some(at),
        };
        for to in successors.get(&at).into_iter().flatten() {
            if set(&mut steps, *to, next) {
                queue.push_back(*to);
            }
        }
        let Ok(version) = &candidate.version else { continue };
        if cost > MAX_COST {
            continue;
        }
        ranges.retain(|edge| {
            cost = cost.saturating_add(1 + edge.size / USUAL_SIZE);
            if cost > MAX_COST {
                return true;
            }
            let reached = edge.range.matches(&version.version);
            if reached && set(&mut steps, edge.to, next) {
                queue.push_back(edge.to);
            }
            !reached
        });
    }
    steps
}

/// Returns the bundles that `replaces` or `skips` lead to, by their predecessor.
fn successors(facts: &CatalogFacts<'_>, query: &CatalogQuery<'_>) -> HashMap<usize, Vec<usize>> {
    let mut successors: HashMap<usize, Vec<usize>> = HashMap::new();
    let seen = facts.content.channels.iter().enumerate();
    for (_, channel) in seen.filter(|(position, _)| query.sees(*position)) {
        for entry in &channel.entries {
            let Some(to) = facts.by_name.get(entry.name.as_str()) else {
                continue;
            };
            for from in entry.skips.iter().chain([&entry.replaces]) {
                if let Some(from) = facts.by_name.get(from.as_str()) {
                    successors.entry(*from).or_default().push(*to);
                }
            }
        }
    }
    successors
}

/// Sets `step` for the bundle at `at` unless it has one; returns whether it was set.
fn set(steps: &mut [Option<PathStep>], at: usize, step: PathStep) -> bool {
    match steps.get_mut(at) {
        Some(slot @ None) => {
            *slot = Some(step);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsed_request::ParsedRequest;
    use crate::{Installed, Request, testing};
    use olm_fbc::{Channel, Entry, PackageContent};

    /// Returns the number of bundles, the installed one included, that a package leads to. It has this many upgrades, each by a range
    /// that contains the version of its predecessor. The ranges have `size` bytes, and the last upgrades come first in the channel.
    fn reached(upgrades: usize, size: usize) -> usize {
        let name = |at: usize| format!("p.v{at}");
        let entry = |at: usize| Entry {
            skip_range: match at.checked_sub(1) {
                Some(before) => format!("{:size$}", format!("1.0.{before}")),
                None => String::new(),
            },
            ..testing::entry(&name(at))
        };
        let content = PackageContent {
            name: "p".to_owned(),
            bundles: (0..=upgrades)
                .map(|at| testing::bundle(&name(at), &format!("1.0.{at}")))
                .collect(),
            channels: vec![Channel {
                name: "stable".to_owned(),
                entries: (0..=upgrades).rev().map(entry).collect(),
            }],
            ..PackageContent::default()
        };
        let catalog = testing::catalog("c", content.clone());
        let request = Request {
            package: "p".into(),
            installed: Some(Installed {
                name: name(0).into(),
                version: "1.0.0".into(),
                catalog: None,
            }),
            ..Request::default()
        };
        let parsed = ParsedRequest::new(&request, None).unwrap();
        let facts = CatalogFacts::new(&catalog, &content, 0, None, false);
        let steps = steps(&facts, &parsed.query(&facts), Some(&name(0)));
        steps.iter().filter(|step| step.is_some()).count()
    }

    #[test]
    fn usual_ranges_cost_little() {
        assert_eq!(reached(40, 0), 41);
        assert_eq!(reached(40, 1000), 41);
    }

    /// The upgrade to a bundle is found by the last test of a version against the ranges that are left: the first costs as much as all
    /// ranges, the second less by one range.
    #[test]
    fn tests_of_ranges_end_at_the_limit() {
        // Each of 402 ranges costs 1000. Five upgrades cost 402,000 + 401,000 + 400,000 + 399,000 + 398,000, which is the limit.
        assert_eq!(reached(402, 999 * USUAL_SIZE), 6);
        assert_eq!(reached(403, 999 * USUAL_SIZE), 5);
        // Each of 1500 ranges costs 2, and 1000 upgrades cost 2,001,000.
        assert_eq!(reached(1500, USUAL_SIZE), 1000);
    }
}
