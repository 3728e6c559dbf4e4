//! Which bundles can be reached from the installed one, and in how many upgrades.

use crate::facts::Facts;
use crate::question::Lens;
use std::collections::{HashMap, VecDeque};

/// Most tests of a version against a `skipRange`. A graph of ranges alone can ask for the square of its
/// entries; what is beyond this is not found, which real catalogs are far from.
const RANGE_TESTS: usize = 2_000_000;

/// Last upgrade on the shortest path to a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Least number of upgrades to the bundle.
    pub(crate) count: usize,
    /// The bundle before it, as a position; none for what is reachable at once.
    pub(crate) via: Option<usize>,
}

/// A shortest way to every bundle of `facts` through the channels that `lens` shows, by position; all none
/// when nothing is installed. `installed` is the name of what is.
pub(crate) fn steps(facts: &Facts<'_>, lens: &Lens<'_>, installed: Option<&str>) -> Vec<Option<Step>> {
    let mut steps = vec![None; facts.bundles.len()];
    let Some(installed) = installed else {
        return steps;
    };
    let mut queue = VecDeque::new();
    for (at, fact) in facts.bundles.iter().enumerate() {
        let count = usize::from(fact.bundle.name != installed);
        let here = lens.in_channels(fact);
        if here && (fact.stays || count == 0 || fact.edges.iter().any(|channel| lens.sees(*channel))) {
            set(&mut steps, at, Step { count, via: None });
            queue.push_back(at);
        }
    }
    if queue.is_empty() {
        return steps;
    }
    let successors = successors(facts, lens);
    let mut ranges: Vec<_> = facts
        .ranges
        .iter()
        .filter(|edge| lens.sees(edge.channel))
        .collect();
    let mut tests = 0;
    while let Some(at) = queue.pop_front() {
        let (Some(Some(step)), Some(fact)) = (steps.get(at).copied(), facts.bundles.get(at)) else {
            continue;
        };
        let next = Step {
            count: step.count + 1,
            via: Some(at),
        };
        for to in successors.get(&at).into_iter().flatten() {
            if set(&mut steps, *to, next) {
                queue.push_back(*to);
            }
        }
        let Ok(version) = &fact.version else { continue };
        if tests > RANGE_TESTS {
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

/// The bundles that `replaces` or `skips` lead to, by what they lead from.
fn successors(facts: &Facts<'_>, lens: &Lens<'_>) -> HashMap<usize, Vec<usize>> {
    let mut successors: HashMap<usize, Vec<usize>> = HashMap::new();
    let seen = facts.content.channels.iter().enumerate();
    for (_, channel) in seen.filter(|(position, _)| lens.sees(*position)) {
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

/// Takes `step` for the bundle at `at` unless there is one already; says whether it did.
fn set(steps: &mut [Option<Step>], at: usize, step: Step) -> bool {
    match steps.get_mut(at) {
        Some(slot @ None) => {
            *slot = Some(step);
            true
        }
        _ => false,
    }
}
