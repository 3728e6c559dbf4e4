//! Progress of a long run over seeds. The report of the run stores it, and a later run continues from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Seeds that are done, and their figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Digest of the code that the seeds ran on. Figures are added up only for equal code.
    pub code: String,
    /// Seeds that are done, as ascending ranges: first and last seed of each range. A seed with a violation is not done.
    pub done: Vec<(u64, u64)>,
    /// Counts of the seeds that are done, by name.
    pub counts: BTreeMap<String, u64>,
    /// Violations of the last run of each failed seed, by seed.
    pub violations: BTreeMap<u64, Vec<String>>,
    /// Seeds that failed first and passed in a repetition, in ascending order.
    pub varying: Vec<u64>,
    /// Duration of all runs in seconds.
    pub seconds: u64,
}

impl Progress {
    /// Returns the progress of a run that starts on the code with this digest.
    pub fn of_code(code: &str) -> Self {
        Self {
            code: code.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the progress with which a run on the code with this digest starts, and a sentence about it. It continues an
    /// earlier run on the same code; otherwise no seed is done.
    pub fn continued(earlier: Option<Self>, code: &str) -> (Self, String) {
        let Some(earlier) = earlier else {
            let said = "No earlier run has left its progress: starts from the beginning.";
            return (Self::of_code(code), said.to_owned());
        };
        let done = earlier.len();
        if earlier.code != code || code.is_empty() {
            let said = format!(
                "The code is not that of the earlier run with its {done} seeds: starts from the beginning."
            );
            return (Self::of_code(code), said);
        }
        let failed = earlier.violations.len();
        let said = format!("Continues after {done} seeds; {failed} with violations run again.");
        (earlier, said)
    }

    /// Returns true if the seed is done.
    pub fn is_done(&self, seed: u64) -> bool {
        let after = self.done.partition_point(|(first, _)| *first <= seed);
        after
            .checked_sub(1)
            .and_then(|at| self.done.get(at))
            .is_some_and(|(_, last)| seed <= *last)
    }

    /// Returns the number of seeds that are done.
    pub fn len(&self) -> u64 {
        self.done.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Returns true if no seed is done.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty()
    }

    /// Records a seed without violations, and adds one to each of its `counts`. A seed that is already done changes nothing. A
    /// seed is recorded as varying if `varies` is true or an earlier run of it had violations.
    pub fn pass(&mut self, seed: u64, counts: impl IntoIterator<Item = String>, varies: bool) {
        if self.is_done(seed) {
            return;
        }
        let failed_before = self.violations.remove(&seed).is_some();
        if varies || failed_before {
            let at = self.varying.partition_point(|known| *known < seed);
            self.varying.insert(at, seed);
        }
        for name in counts {
            *self.counts.entry(name).or_default() += 1;
        }
        let at = self.done.partition_point(|(first, _)| *first < seed);
        self.done.insert(at, (seed, seed));
        self.join(at);
        if at > 0 {
            self.join(at - 1);
        }
    }

    /// Records the violations of a seed and replaces earlier ones. The seed is not done, so a later run repeats it.
    pub fn fail(&mut self, seed: u64, lines: Vec<String>) {
        self.violations.insert(seed, lines);
    }

    /// Joins the range with index `at` with the next one if no seed is between them.
    fn join(&mut self, at: usize) {
        if let (Some(&(first, last)), Some(&(next, end))) = (self.done.get(at), self.done.get(at + 1))
            && last + 1 == next
        {
            self.done[at] = (first, end);
            self.done.remove(at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Progress;

    fn passed(seeds: &[u64]) -> Progress {
        let mut progress = Progress::of_code("x");
        for seed in seeds {
            progress.pass(*seed, ["requests".to_owned()], false);
        }
        progress
    }

    #[test]
    fn seeds_in_any_order_become_few_ranges() {
        let progress = passed(&[5, 3, 9, 4, 1, 8, 5]);
        assert_eq!(progress.done, [(1, 1), (3, 5), (8, 9)]);
        assert_eq!(progress.len(), 6);
        let done: Vec<u64> = (0..11).filter(|seed| progress.is_done(*seed)).collect();
        assert_eq!(done, [1, 3, 4, 5, 8, 9]);
    }

    #[test]
    fn a_seed_counts_once() {
        let mut progress = passed(&[1, 2]);
        progress.pass(2, ["requests".to_owned(), "more".to_owned()], true);
        assert_eq!(progress.counts.get("requests"), Some(&2));
        assert_eq!(progress.counts.get("more"), None);
        assert!(progress.varying.is_empty());
    }

    #[test]
    fn a_violation_stays_until_the_seed_passes_which_then_varies() {
        let mut progress = passed(&[1, 3]);
        progress.fail(2, vec!["first".into()]);
        progress.fail(2, vec!["second".into()]);
        assert!(!progress.is_done(2));
        assert_eq!(progress.violations.get(&2), Some(&vec!["second".to_owned()]));
        progress.pass(2, [], false);
        assert!(progress.violations.is_empty());
        assert_eq!((progress.done, progress.varying), (vec![(1, 3)], vec![2]));
    }

    #[test]
    fn only_the_progress_of_the_same_code_is_continued() {
        let mut earlier = passed(&[1, 2, 3]);
        earlier.fail(4, vec!["other".into()]);
        let (same, said) = Progress::continued(Some(earlier.clone()), "x");
        assert_eq!(same, earlier);
        assert!(said.contains("after 3 seeds"), "{said}");
        for (known, code) in [(Some(earlier), "y"), (Some(Progress::default()), ""), (None, "x")] {
            let (new, said) = Progress::continued(known, code);
            assert_eq!(new, Progress::of_code(code));
            assert!(said.contains("from the beginning"), "{said}");
        }
    }
}
