//! Figures and violations, added up over many runs.

use std::collections::{BTreeMap, HashSet};

use olm_proof::Violation;
use serde::{Deserialize, Serialize};

use crate::run::Outcome;

/// Figures of runs. The serialized form lacks the violations, which a report has anyway, and the states, which are too many.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    runs: usize,
    calls: usize,
    #[serde(skip)]
    states: HashSet<u64>,
    /// Largest number of distinct states that one command saw.
    most_states: usize,
    /// Largest number of actions in one run.
    depth: usize,
    /// Number of runs with a violation.
    broken: usize,
    /// Violation with the shortest schedule of each kind. Violations that differ only in numbers or in the schedule are of one
    /// kind.
    #[serde(skip)]
    violations: BTreeMap<String, Violation>,
}

impl Tally {
    /// Adds a run.
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.calls += outcome.calls.len();
        self.states.extend(&outcome.states);
        self.depth = self.depth.max(outcome.depth);
        self.most_states = self.most_states.max(self.states.len());
        self.broken += usize::from(!outcome.violations.is_empty());
        self.keep(&outcome.violations);
    }

    /// Adds violations of a run or of an earlier command.
    pub(crate) fn keep(&mut self, violations: &[Violation]) {
        for violation in violations {
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
            (
                "distinct states, in the command that saw most",
                self.most_states.to_string(),
            ),
            ("most actions in one run", self.depth.to_string()),
            ("runs with a violation", self.broken.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Returns one violation of each kind.
    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.violations.values().cloned().collect()
    }
}
