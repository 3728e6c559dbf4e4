//! Progress of the explorations of one state of the code. The report stores it, and a later exploration continues it.

use std::collections::BTreeMap;

use olm_proof::{Progress, Report};
use serde::{Deserialize, Serialize};

use crate::run::Outcome;
use crate::tally::Tally;

/// Runs that are done, and their figures. A run depends only on the code, so no run is repeated on the same code.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Digest of the code that ran; empty if it is unknown.
    code: String,
    /// Indexes of the runs that are done, by name of their set.
    sets: BTreeMap<String, Progress>,
    /// Figures of all runs.
    pub(super) tally: Tally,
    /// Further counts, by name.
    pub(super) counts: BTreeMap<String, u64>,
}

impl Kept {
    /// Continues the progress of an earlier report on the same code. Without such a report, nothing is done yet.
    pub(super) fn continued(earlier: Option<&Report>, code: &str) -> Self {
        let known = earlier.and_then(|report| serde_json::from_value::<Self>(report.state.clone()).ok());
        match known.filter(|known| !code.is_empty() && known.code == code) {
            Some(mut known) => {
                known.tally.keep(earlier.map_or(&[], |report| &report.violations));
                known
            }
            None => Self {
                code: code.to_owned(),
                ..Self::default()
            },
        }
    }

    /// Returns true if the run of a set with index `at` is done.
    pub(super) fn is_done(&self, set: &str, at: u64) -> bool {
        self.sets.get(set).is_some_and(|progress| progress.is_done(at))
    }

    /// Returns the number of runs of a set that are done.
    pub(super) fn done(&self, set: &str) -> u64 {
        self.sets.get(set).map_or(0, Progress::len)
    }

    /// Records that the run of a set with index `at` is done.
    pub(super) fn finish(&mut self, set: &str, at: u64) {
        self.sets
            .entry(set.to_owned())
            .or_default()
            .pass(at, std::iter::empty(), false);
    }

    /// Adds the figures of a run, and logs its first violation at once.
    pub(super) fn add(&mut self, outcome: &Outcome) {
        if let Some(first) = outcome.violations.first() {
            tracing::warn!(seed = first.seed, first.invariant, first.text, "violation");
        }
        self.tally.add(outcome);
    }

    /// Adds `more` to a count.
    pub(super) fn count(&mut self, name: &str, more: u64) {
        *self.counts.entry(name.to_owned()).or_default() += more;
    }
}

#[cfg(test)]
mod tests {
    use olm_proof::{Report, Violation};

    use super::Kept;

    #[test]
    fn only_runs_of_the_same_code_are_continued() {
        let mut kept = Kept::continued(None, "x");
        kept.finish("single faults", 4);
        kept.count("pairs", 12);
        let violation = Violation {
            invariant: "newest-stays".into(),
            seed: "install 4=crash-before".into(),
            text: "Object 1 is absent.".into(),
        };
        let report = Report {
            state: serde_json::to_value(&kept).unwrap(),
            violations: vec![violation.clone()],
            ..Report::default()
        };
        let same = Kept::continued(Some(&report), "x");
        assert!(same.is_done("single faults", 4) && !same.is_done("single faults", 5));
        assert_eq!((same.done("single faults"), same.done("other")), (1, 0));
        assert_eq!(same.counts.get("pairs"), Some(&12));
        assert_eq!(same.tally.violations(), [violation]);
        for code in ["y", ""] {
            assert_eq!(
                Kept::continued(Some(&report), code).done("single faults"),
                0,
                "{code}"
            );
        }
    }
}
