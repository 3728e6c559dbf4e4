//! Results of the tried bugs, kept over several runs. This module is pure.

use std::collections::BTreeMap;

use olm_proof::{Report, Violation};
use serde::{Deserialize, Serialize};

/// Results by name of the bug.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct State(BTreeMap<String, Tried>);

/// Result of one patch, or of all bugs between the controllers and the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tried {
    /// Digest of the simulation, the controllers and the patch.
    pub(super) code: String,
    /// Figures for the report.
    pub(super) figures: Vec<(String, String)>,
    /// Violations: one for each bug that was not found.
    pub(super) violations: Vec<Violation>,
    /// Sentences about bugs that were not tried.
    pub(super) not_covered: Vec<String>,
}

impl State {
    /// Returns true if the bug must be tried: it is new, was not found, or was tried with other code.
    pub(super) fn is_open(&self, name: &str, code: &str) -> bool {
        self.0.get(name).is_none_or(|tried| {
            tried.code != code || !tried.violations.is_empty() || !tried.not_covered.is_empty()
        })
    }

    pub(super) fn put(&mut self, name: &str, tried: Tried) {
        self.0.insert(name.to_owned(), tried);
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Adds results to the report. `names` has the names of the bugs, each with the digest of its code in the checkout.
    pub(super) fn report(&self, names: &[(&str, &str)], report: &mut Report) {
        let mut open = Vec::new();
        for (name, code) in names {
            let Some(tried) = self.0.get(*name) else {
                open.push(*name);
                continue;
            };
            let of = if tried.code == *code {
                ""
            } else {
                ", with earlier code"
            };
            let figures = tried.figures.iter();
            report
                .figures
                .extend(figures.map(|(what, figure)| (what.clone(), format!("{figure}{of}"))));
            report.violations.extend(tried.violations.iter().cloned());
            report.not_covered.extend(tried.not_covered.iter().cloned());
        }
        if !open.is_empty() {
            report
                .not_covered
                .push(format!("{} were not tried: {}.", open.len(), open.join(", ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_that_were_found_with_the_same_code_are_done() {
        let found = |code: &str| Tried {
            code: code.to_owned(),
            figures: vec![("bug".to_owned(), "found".to_owned())],
            ..Tried::default()
        };
        let mut state = State::default();
        assert!(state.is_open("a", "1"));
        state.put("a", found("1"));
        assert!(!state.is_open("a", "1") && state.is_open("a", "2"));
        let missed = Tried {
            violations: vec![Violation {
                invariant: "adequacy".to_owned(),
                seed: "b".to_owned(),
                text: "b is not found".to_owned(),
            }],
            ..found("1")
        };
        state.put("b", missed);
        assert!(state.is_open("b", "1"));

        let mut report = Report::default();
        state.report(&[("a", "2"), ("b", "1"), ("c", "1")], &mut report);
        let figures: Vec<&str> = report.figures.iter().map(|(_, figure)| figure.as_str()).collect();
        assert_eq!(figures, ["found, with earlier code", "found"]);
        assert_eq!(report.violations.len(), 1);
        assert_eq!(report.not_covered, ["1 were not tried: c."]);
        state.forget("a");
        assert!(state.is_open("a", "1"));
    }
}
