//! Sums over the cases of a part.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Numbers;

/// Sums over cases: which cases ran, counts, and distributions of durations. Tallies of several runs can be merged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Numbers of the cases that ran, by the name of their series.
    cases: BTreeMap<String, Numbers>,
    /// Counts by name.
    counts: BTreeMap<String, u64>,
    /// Histograms of durations, by name: the number of durations of each length in tenths of a second.
    times: BTreeMap<String, BTreeMap<u64, u64>>,
}

impl Tally {
    /// Adds a case to a series, such as the schedules.
    pub fn end(&mut self, series: &str, case: u64) {
        self.cases.entry(series.to_owned()).or_default().insert(case);
    }

    /// Returns true if the series has the case.
    #[must_use]
    pub fn has(&self, series: &str, case: u64) -> bool {
        self.cases.get(series).is_some_and(|cases| cases.contains(case))
    }

    /// Returns the cases of a series.
    #[must_use]
    pub fn cases(&self, series: &str) -> Numbers {
        self.cases.get(series).cloned().unwrap_or_default()
    }

    /// Adds `more` to a count.
    pub fn add(&mut self, name: &str, more: u64) {
        *self.counts.entry(name.to_owned()).or_default() += more;
    }

    /// Returns a count.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or_default()
    }

    /// Returns the counts whose names begin with `prefix`, with their whole names.
    pub fn counts<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        let chosen = move |(name, _): &(&String, &u64)| name.starts_with(prefix);
        self.counts
            .iter()
            .filter(chosen)
            .map(|(name, count)| (name.as_str(), *count))
    }

    /// Adds a duration, rounded to tenths of a second.
    pub fn time(&mut self, name: &str, time: Duration) {
        let tenths = u64::try_from((time.as_millis() + 50) / 100).unwrap_or(u64::MAX);
        let lengths = self.times.entry(name.to_owned()).or_default();
        *lengths.entry(tenths).or_default() += 1;
    }

    /// Returns a percentile of the durations: the shortest one that `percent` percent of them do not exceed. 100 gives the
    /// longest duration; without durations, the result is 0.
    #[must_use]
    pub fn percentile(&self, name: &str, percent: u64) -> Duration {
        let lengths = self.times.get(name).into_iter().flatten();
        let total: u64 = lengths.clone().map(|(_, count)| count).sum();
        let wanted = (total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = lengths.clone().find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        Duration::from_millis(found.map_or(0, |(tenths, _)| *tenths) * 100)
    }

    /// Returns the median, the 95th percentile and the longest duration as text.
    #[must_use]
    pub fn spread(&self, name: &str) -> String {
        let [median, most, longest] =
            [50, 95, 100].map(|percent| self.percentile(name, percent).as_secs_f64());
        format!("{median:.1} s, {most:.1} s, {longest:.1} s")
    }

    /// Adds the sums of another tally.
    pub fn merge(&mut self, other: &Self) {
        for (series, cases) in &other.cases {
            let own = self.cases.entry(series.clone()).or_default();
            own.extend(cases);
        }
        for (name, count) in &other.counts {
            self.add(name, *count);
        }
        for (name, lengths) in &other.times {
            let own = self.times.entry(name.clone()).or_default();
            for (tenths, count) in lengths {
                *own.entry(*tenths).or_default() += count;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(cases: std::ops::Range<u64>) -> Tally {
        let mut tally = Tally::default();
        for case in cases {
            tally.end("schedules", case);
            tally.add("kills", case);
            tally.time("convergence", Duration::from_secs(case));
        }
        tally
    }

    #[test]
    fn the_sum_of_two_runs_is_the_result_of_one() {
        let mut first = tally(1..5);
        first.merge(&tally(5..11));
        assert_eq!(first, tally(1..11));
        assert!(first.has("schedules", 10) && !first.has("schedules", 11));
        assert_eq!(first.count("kills"), 55);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_durations() {
        let tally = tally(1..21);
        assert_eq!(tally.spread("convergence"), "10.0 s, 19.0 s, 20.0 s");
        assert_eq!(tally.percentile("nothing", 50), Duration::ZERO);
    }

    #[test]
    fn a_tally_survives_its_text() {
        let text = serde_json::to_string(&tally(3..9)).unwrap();
        assert_eq!(serde_json::from_str::<Tally>(&text).unwrap(), tally(3..9));
    }
}
