//! Bundles reachable from the installed one, and the number of upgrades to each.

use crate::facts::CatalogFacts;
use crate::parsed_request::CatalogQuery;
use std::collections::{HashMap, VecDeque};

/// Maximum number of tests of a version against a `skipRange`. A graph of ranges can require the square of its entries;
/// bundles beyond the limit count as unreachable. Real catalogs are far below it.
const MAX_RANGE_TESTS: usize = 2_000_000;

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
    let mut tests = 0;
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
        if tests > MAX_RANGE_TESTS {
            continue;
        }
        tests += ranges.len();
        ranges.retain(|edge| {
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
