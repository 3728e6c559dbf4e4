//! Figures over many runs.

use std::collections::{BTreeMap, HashSet};

use olm_proof::Violation;

use crate::run::Outcome;

/// Figures of runs.
#[derive(Default)]
pub(crate) struct Tally {
    runs: usize,
    calls: usize,
    states: HashSet<u64>,
    depth: usize,
    broken: usize,
    /// The violation with the shortest schedule, of each kind.
    violations: BTreeMap<String, Violation>,
}

impl Tally {
    /// Adds a run.
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.calls += outcome.calls.len();
        self.states.extend(&outcome.states);
        self.depth = self.depth.max(outcome.depth);
        self.broken += usize::from(!outcome.violations.is_empty());
        for violation in &outcome.violations {
            let scenario = violation.seed.split(' ').next().unwrap_or_default();
            let text: String = violation.text.chars().filter(|c| !c.is_ascii_digit()).collect();
            let kind = format!("{} {scenario} {text}", violation.invariant);
            let shorter = |known: &Violation| known.seed.len() > violation.seed.len();
            if self.violations.get(&kind).is_none_or(shorter) {
                self.violations.insert(kind, violation.clone());
            }
        }
    }

    /// Returns the figures for a report.
    pub(crate) fn figures(&self) -> Vec<(String, String)> {
        [
            ("runs", self.runs.to_string()),
            ("calls", self.calls.to_string()),
            ("distinct states", self.states.len().to_string()),
            ("most actions in one run", self.depth.to_string()),
            ("runs with a violation", self.broken.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Returns one violation of each kind.
    pub(crate) fn violations(self) -> Vec<Violation> {
        self.violations.into_values().collect()
    }
}
