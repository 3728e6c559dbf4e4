//! Totals of the targets over several runs. This module is pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Ran;
use super::stats::Stats;

/// Maximum duration of one run of a target, in seconds. Short runs let all targets progress together, and little is lost if a run
/// is stopped.
const SLICE: u64 = 60;

/// Totals by `CRATE/TARGET`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Totals(BTreeMap<String, Total>);

/// Totals of a target's runs on the same code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Total {
    /// Digest of the code of the target, its crate, and the workspace's crates below it.
    code: String,
    /// Processor time of all runs, in seconds.
    pub(super) seconds: u64,
    /// Statistics. The number of runs adds up; the other figures are those of the last run.
    pub(super) stats: Stats,
    /// Paths, in the repository, of the inputs that broke the target.
    pub(super) findings: BTreeSet<String>,
    /// True if the runs were on other code than that of the checkout.
    #[serde(skip)]
    pub(super) is_old: bool,
}

impl Totals {
    /// Marks totals that are of other code than the checkout, and forgets those of targets that do not exist any more. `codes`
    /// has the digest of each target's code.
    pub(super) fn settle(&mut self, codes: &BTreeMap<String, String>) {
        self.0.retain(|title, _| codes.contains_key(title));
        for (title, code) in codes {
            let total = self.0.entry(title.clone()).or_default();
            total.is_old = total.seconds > 0 && total.code != *code;
        }
    }

    /// Prepares runs of a target: forgets its totals if they are of other code, or if `anew` is true.
    pub(super) fn renew(&mut self, title: &str, code: &str, anew: bool) {
        let total = self.0.entry(title.to_owned()).or_default();
        if anew || total.code != code {
            *total = Total {
                code: code.to_owned(),
                ..Total::default()
            };
        }
    }

    /// Returns the target in `titles` with the least time so far, and the seconds of its next run. Returns `None` if all targets
    /// have run for `asked` seconds or are broken.
    pub(super) fn next<'a>(
        &self,
        titles: impl Iterator<Item = &'a str>,
        asked: u64,
    ) -> Option<(&'a str, u64)> {
        let waiting = titles.filter_map(|title| {
            let total = self.0.get(title)?;
            let is_done = total.seconds >= asked || !total.findings.is_empty();
            (!is_done).then_some((total.seconds, title))
        });
        let (seconds, title) = waiting.min()?;
        Some((title, SLICE.min(asked - seconds)))
    }

    /// Adds the result of a run to the totals of its target.
    pub(super) fn add(&mut self, title: &str, ran: Ran) {
        let total = self.0.entry(title.to_owned()).or_default();
        total.seconds += ran.seconds;
        total.stats = Stats {
            runs: total.stats.runs + ran.stats.runs,
            ..ran.stats
        };
        total.findings.extend(ran.findings);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Total)> {
        self.0.iter().map(|(title, total)| (title.as_str(), total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(runs: u64, edges: u64) -> Stats {
        Stats {
            runs,
            edges,
            ..Stats::default()
        }
    }

    fn ran(seconds: u64, runs: u64) -> Ran {
        Ran {
            seconds,
            stats: stats(runs, 7),
            findings: Vec::new(),
        }
    }

    fn codes(of_b: &str) -> BTreeMap<String, String> {
        [("a", "1"), ("b", of_b)]
            .map(|(title, code)| (title.to_owned(), code.to_owned()))
            .into()
    }

    #[test]
    fn seconds_add_up_and_the_shortest_runs_next() {
        let mut totals = Totals::default();
        totals.settle(&codes("1"));
        let titles = || ["a", "b"].into_iter();
        for (title, code) in codes("1") {
            totals.renew(&title, &code, false);
        }
        let mut order = Vec::new();
        while let Some((title, seconds)) = totals.next(titles(), 100) {
            totals.add(title, ran(seconds, 10));
            order.push((title, seconds));
        }
        assert_eq!(order, [("a", 60), ("b", 60), ("a", 40), ("b", 40)]);
        assert_eq!(totals.0["a"].stats, stats(20, 7));
        assert_eq!(
            totals.next(titles(), 130),
            Some(("a", 30)),
            "a longer time continues"
        );
    }

    #[test]
    fn a_broken_target_waits_for_other_code() {
        let mut totals = Totals::default();
        totals.renew("a", "1", false);
        let findings = vec!["crash".to_owned()];
        totals.add(
            "a",
            Ran {
                findings,
                ..ran(3, 1)
            },
        );
        totals.renew("a", "1", false);
        assert_eq!(totals.next(["a"].into_iter(), 100), None);
        totals.renew("a", "2", false);
        assert_eq!(totals.next(["a"].into_iter(), 100), Some(("a", 60)));
    }

    #[test]
    fn other_code_and_a_new_start_forget() {
        let mut totals = Totals::default();
        for (title, code) in codes("1") {
            totals.renew(&title, &code, false);
            totals.add(&title, ran(50, 1));
        }
        totals.settle(&codes("2"));
        let old: Vec<bool> = totals.iter().map(|(_, total)| total.is_old).collect();
        assert_eq!(old, [false, true]);
        totals.renew("a", "1", true);
        assert_eq!(totals.0["a"].seconds, 0);
        totals.settle(&[("b".to_owned(), "1".to_owned())].into());
        assert_eq!(totals.iter().count(), 1, "a target that is gone has no totals");
    }
}
