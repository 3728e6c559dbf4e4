//! State of the chore in its report: the results of all groups, each with the code and the tests of its run.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::results::{Names, Results};
use crate::code::{self, Checkout};

/// Results by group.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct State(BTreeMap<String, Kept>);

/// Results of one group.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    basis: Basis,
    results: Results,
    /// True if the results do not hold for the code of the checkout.
    #[serde(skip)]
    is_old: bool,
}

/// Code and tests with which results were obtained.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Basis {
    /// Digest of the code of the crate, and of the workspace's crates that it and its tests need.
    code: String,
    /// Digests of the crate's tests, separated by spaces.
    tests: String,
}

impl Basis {
    /// Returns the basis for mutants of a crate in the checkout.
    pub(super) fn of(package: &str, checkout: &Checkout) -> anyhow::Result<Self> {
        let code = code::code(&checkout.files, checkout.packages.folder(package)?);
        let tests: Vec<&str> = code.tests.iter().map(String::as_str).collect();
        Ok(Self {
            code: code::sum(code::digests(
                &checkout.files,
                &checkout.packages.closure(package, true)?,
            )),
            tests: tests.join(" "),
        })
    }

    fn tests(&self) -> BTreeSet<&str> {
        self.tests.split_whitespace().collect()
    }

    /// Returns true if results with the basis `earlier` hold: the code is the same, and no test was removed, so the tests that
    /// caught mutants still exist.
    fn holds(&self, earlier: &Self) -> bool {
        self.code == earlier.code && earlier.tests().is_subset(&self.tests())
    }
}

impl State {
    /// Prepares a run of the group on `basis`. Forgets all results if they do not hold or `anew` is true. If there are new tests,
    /// forgets the survivors.
    pub(super) fn renew(&mut self, group: &str, basis: &Basis, anew: bool) {
        let kept = self.0.entry(group.to_owned()).or_default();
        if anew || !basis.holds(&kept.basis) {
            kept.results = Results::default();
        } else if kept.basis != *basis {
            kept.results.forget_survivors();
        }
        kept.basis = basis.clone();
    }

    /// Limits the results of the group to the mutants in `names`, or marks the results as old if they do not hold on `basis`.
    pub(super) fn settle(&mut self, group: &str, basis: &Basis, names: &Names) {
        let kept = self.0.entry(group.to_owned()).or_default();
        kept.is_old = kept.results.total() > 0 && !basis.holds(&kept.basis);
        if !kept.is_old {
            kept.results.retain(names);
        }
    }

    /// Returns the results of a group.
    pub(super) fn results(&mut self, group: &str) -> &mut Results {
        &mut self.0.entry(group.to_owned()).or_default().results
    }

    /// Returns the name and the results of each group, and true if the results are old.
    pub(super) fn groups(&self) -> impl Iterator<Item = (&str, &Results, bool)> {
        let groups = self.0.iter();
        groups.map(|(name, kept)| (name.as_str(), &kept.results, kept.is_old))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn basis(code: &str, tests: &str) -> Basis {
        Basis {
            code: code.to_owned(),
            tests: tests.to_owned(),
        }
    }

    /// Returns the figure after two runs: one on `first`, in which one mutant is caught and one missed, and the start of one on
    /// `second`.
    fn after(first: &Basis, second: &Basis) -> String {
        let names = Names::new(&["a.rs:1:1: x".to_owned(), "a.rs:2:1: y".to_owned()]);
        let mut state = State::default();
        state.renew("g", first, false);
        state
            .results("g")
            .record("a.rs:1:1: x", super::super::Outcome::Caught, &names);
        state
            .results("g")
            .record("a.rs:2:1: y", super::super::Outcome::Missed, &names);
        state.renew("g", second, false);
        state.settle("g", second, &names);
        state.results("g").figure()
    }

    #[test]
    fn a_stopped_run_counts_the_mutants_that_did_not_run() {
        let names = Names::new(&["a.rs:1:1: x".to_owned(), "a.rs:2:1: y".to_owned()]);
        let basis = basis("1", "s");
        let mut state = State::default();
        state.renew("g", &basis, false);
        state.settle("g", &basis, &names);
        state
            .results("g")
            .record("a.rs:1:1: x", super::super::Outcome::Caught, &names);
        assert_eq!(state.results("g").not_run(), 1);
        assert_eq!(names.with_result(state.results("g")).len(), 1);
    }

    #[test]
    fn results_hold_while_the_code_is_the_same_and_no_test_is_gone() {
        let one = basis("1", "s t");
        assert!(after(&one, &one).starts_with("1 of 2 caught"));
        let more_tests = basis("1", "s t u");
        assert!(
            after(&one, &more_tests).starts_with("1 of 1 caught"),
            "survivors run again"
        );
        for other in [basis("2", "s t"), basis("1", "s"), basis("1", "s u")] {
            assert!(after(&one, &other).starts_with("0 of 0 caught"), "{other:?}");
        }
    }
}
