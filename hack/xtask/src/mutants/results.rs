//! Results of mutants, kept over several runs under names that do not depend on line numbers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// Result of one mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// A test fails.
    Caught,
    /// All tests pass.
    Missed,
    /// The tests do not end.
    Timeout,
    /// The mutant does not compile.
    Unviable,
}

/// Files of cargo-mutants with the names of mutants, one on each line, and the outcome of these mutants.
const FILES: [(&str, Outcome); 4] = [
    ("caught.txt", Outcome::Caught),
    ("missed.txt", Outcome::Missed),
    ("timeout.txt", Outcome::Timeout),
    ("unviable.txt", Outcome::Unviable),
];

/// Names of the mutants of a group, as pairs. cargo-mutants uses `FILE:LINE:COLUMN: CHANGE`. The results use `FILE: CHANGE`,
/// which stays the same if lines are added above; equal changes in a file are numbered.
pub(super) struct Names(Vec<(String, String)>);

impl Names {
    /// Returns the names for the list of cargo-mutants, which has the order of the code.
    pub(super) fn new(listed: &[String]) -> Self {
        let mut count = BTreeMap::<String, usize>::new();
        let named = listed.iter().map(|listed| {
            let mut name = without_position(listed);
            let count = count.entry(name.clone()).or_default();
            *count += 1;
            if *count > 1 {
                name = format!("{name} ({count})");
            }
            (listed.clone(), name)
        });
        Self(named.collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the names by cargo-mutants of the mutants that have a result.
    pub(super) fn with_result(&self, results: &Results) -> Vec<&str> {
        let ran = self
            .0
            .iter()
            .filter(|(_, name)| results.0.get(name).is_some_and(Option::is_some));
        ran.map(|(listed, _)| listed.as_str()).collect()
    }
}

/// Returns `FILE: CHANGE` for `FILE:LINE:COLUMN: CHANGE`.
fn without_position(listed: &str) -> String {
    match listed.split_once(": ") {
        Some((place, change)) => format!("{}: {change}", place.split(':').next().unwrap_or(place)),
        None => listed.to_owned(),
    }
}

/// Writes the mutants to leave out to `folder`, in the form of results of an earlier run of cargo-mutants.
pub(super) fn skip(folder: &Path, listed: &[&str]) -> anyhow::Result<()> {
    let earlier = folder.join("mutants.out");
    if earlier.exists() {
        fs::remove_dir_all(&earlier).with_context(|| format!("cannot remove {}", earlier.display()))?;
    }
    fs::create_dir_all(&earlier).with_context(|| format!("cannot create {}", earlier.display()))?;
    let path = earlier.join("previously_caught.txt");
    let lines: Vec<String> = listed.iter().map(|name| format!("{name}\n")).collect();
    fs::write(&path, lines.concat()).with_context(|| format!("cannot write {}", path.display()))
}

/// Results, by name of the mutant; `None` for a mutant that did not run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(super) struct Results(BTreeMap<String, Option<Outcome>>);

/// Serialized form of [`Results`]: names of the mutants that ran, by outcome.
type Stored = BTreeMap<Outcome, Vec<String>>;

impl From<Stored> for Results {
    fn from(stored: Stored) -> Self {
        let each = stored
            .into_iter()
            .flat_map(|(outcome, names)| names.into_iter().map(move |name| (name, Some(outcome))));
        Self(each.collect())
    }
}

impl From<Results> for Stored {
    fn from(results: Results) -> Self {
        let mut stored = Self::new();
        for (name, outcome) in results.0 {
            if let Some(outcome) = outcome {
                stored.entry(outcome).or_default().push(name);
            }
        }
        stored
    }
}

impl Results {
    /// Adds the results of the run of cargo-mutants in `folder`. Survivors are added only if `is_last` is true, because earlier
    /// runs do not have all tests.
    pub(super) fn merge(&mut self, folder: &Path, names: &Names, is_last: bool) -> anyhow::Result<()> {
        let taken = FILES
            .iter()
            .filter(|(_, outcome)| is_last || *outcome != Outcome::Missed);
        for (file, outcome) in taken {
            let path = folder.join("mutants.out").join(file);
            if path.is_file() {
                let listed =
                    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                self.record(&listed, *outcome, names);
            }
        }
        Ok(())
    }

    /// Adds an outcome of mutants, whose names by cargo-mutants are the lines of `listed`.
    pub(super) fn record(&mut self, listed: &str, outcome: Outcome, names: &Names) {
        for line in listed.lines() {
            if let Some((_, name)) = names.0.iter().find(|(listed, _)| listed == line) {
                self.0.insert(name.clone(), Some(outcome));
            }
        }
    }

    /// Keeps only the results of the mutants in `names`. Mutants in `names` without a result count as not run.
    pub(super) fn retain(&mut self, names: &Names) {
        let wanted = names.0.iter().map(|(_, name)| name);
        let kept = wanted.map(|name| (name.clone(), self.0.get(name).copied().flatten()));
        self.0 = kept.collect();
    }

    /// Forgets the results of the mutants that no test caught.
    pub(super) fn forget_survivors(&mut self) {
        self.0.retain(|_, outcome| *outcome != Some(Outcome::Missed));
    }

    /// Adds the results of another group.
    pub(super) fn add(&mut self, other: &Self) {
        self.0.extend(other.0.clone());
    }

    pub(super) fn total(&self) -> usize {
        self.0.len()
    }

    pub(super) fn not_run(&self) -> usize {
        self.0.values().filter(|outcome| outcome.is_none()).count()
    }

    /// Returns the names of the mutants with this outcome.
    pub(super) fn with(&self, wanted: Outcome) -> impl Iterator<Item = &str> {
        let found = self
            .0
            .iter()
            .filter(move |(_, outcome)| **outcome == Some(wanted));
        found.map(|(name, _)| name.as_str())
    }

    /// Returns the share of the viable mutants that were caught, in whole percent; `None` if no viable mutant ran.
    pub(super) fn share(&self) -> Option<usize> {
        let caught = self.caught();
        (caught * 100).checked_div(caught + self.with(Outcome::Missed).count())
    }

    /// Returns the number of mutants that a test caught or that timed out.
    fn caught(&self) -> usize {
        self.with(Outcome::Caught).count() + self.with(Outcome::Timeout).count()
    }

    /// Returns the figures as text.
    pub(super) fn figure(&self) -> String {
        let (caught, missed) = (self.caught(), self.with(Outcome::Missed).count());
        let share = self
            .share()
            .map_or_else(String::new, |share| format!(" ({share} %)"));
        format!(
            "{caught} of {} caught{share}, {} of them by a timeout, {missed} missed, {} do not compile, {} of {} did not run",
            caught + missed,
            self.with(Outcome::Timeout).count(),
            self.with(Outcome::Unviable).count(),
            self.not_run(),
            self.total()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(listed: &[&str]) -> Names {
        Names::new(&listed.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn later_runs_add_to_earlier_ones() {
        let of = |letters: &str| {
            let listed: Vec<String> = letters.chars().map(|c| format!("x.rs:1:2: {c}")).collect();
            Names::new(&listed)
        };
        let all = of("abcdefg");
        let mut results = Results::default();
        assert_eq!(results.share(), None);
        results.record("x.rs:1:2: a\nx.rs:1:2: b\nx.rs:1:2: g\n", Outcome::Missed, &all);
        results.record("x.rs:1:2: b\nx.rs:1:2: c\nunknown\n", Outcome::Caught, &all);
        results.record("x.rs:1:2: d\n", Outcome::Timeout, &all);
        results.record("x.rs:1:2: e\n", Outcome::Unviable, &all);
        results.retain(&of("abcdef"));
        assert_eq!(results.share(), Some(75));
        assert_eq!(results.with(Outcome::Missed).collect::<Vec<_>>(), ["x.rs: a"]);
        assert_eq!(
            results.figure(),
            "3 of 4 caught (75 %), 1 of them by a timeout, 1 missed, 1 do not compile, 1 of 6 did not run"
        );
        assert_eq!(all.with_result(&results).len(), 5);
        let mut read: Results = serde_json::from_value(serde_json::to_value(&results).unwrap()).unwrap();
        read.retain(&of("abcdef"));
        assert_eq!(read, results, "the results survive the report");
    }

    #[test]
    fn names_of_results_have_no_position() {
        let names = names(&[
            "pkg/a.rs:7:5: replace f -> bool with true",
            "pkg/a.rs:9:5: replace == with != in f",
            "pkg/a.rs:9:15: replace == with != in f",
        ]);
        let kept: Vec<&str> = names.0.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(
            kept,
            [
                "pkg/a.rs: replace f -> bool with true",
                "pkg/a.rs: replace == with != in f",
                "pkg/a.rs: replace == with != in f (2)"
            ]
        );
    }
}
