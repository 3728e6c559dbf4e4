//! Results of mutants, kept over several runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

/// File of the results of a group.
const FILE: &str = "results.json";

/// Result of one mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Files of cargo-mutants with a name on each line.
const FILES: [(&str, Outcome); 4] = [
    ("caught.txt", Outcome::Caught),
    ("missed.txt", Outcome::Missed),
    ("timeout.txt", Outcome::Timeout),
    ("unviable.txt", Outcome::Unviable),
];

/// Results by the names of the mutants; `None` for a mutant that did not run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Results(BTreeMap<String, Option<Outcome>>);

impl Results {
    /// Reads the results of earlier runs; none if there was no run.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        match fs::read(&path) {
            Ok(text) => {
                serde_json::from_slice(&text).with_context(|| format!("cannot parse {}", path.display()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Writes the results for later runs.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = folder.join(FILE);
        fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Adds the results of the last run of cargo-mutants in `folder`.
    pub(super) fn merge(&mut self, folder: &Path) -> anyhow::Result<()> {
        for (file, outcome) in FILES {
            let path = folder.join("mutants.out").join(file);
            if path.is_file() {
                let names =
                    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                self.record(&names, outcome);
            }
        }
        Ok(())
    }

    fn record(&mut self, names: &str, outcome: Outcome) {
        for name in names.lines() {
            self.0.insert(name.to_owned(), Some(outcome));
        }
    }

    /// Keeps the results of the mutants in `names`; the others of `names` did not run.
    pub(super) fn retain(&mut self, names: &BTreeSet<String>) {
        self.0.retain(|name, _| names.contains(name));
        for name in names {
            self.0.entry(name.clone()).or_default();
        }
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

    /// Returns the share of the viable mutants that were caught, in whole percent; `None` if none ran.
    pub(super) fn share(&self) -> Option<usize> {
        let caught = self.caught();
        (caught * 100).checked_div(caught + self.with(Outcome::Missed).count())
    }

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

    #[test]
    fn later_runs_add_to_earlier_ones() {
        let mut results = Results::default();
        assert_eq!(results.share(), None);
        results.record("a\nb\ngone\n", Outcome::Missed);
        results.record("b\nc\n", Outcome::Caught);
        results.record("d\n", Outcome::Timeout);
        results.record("e\n", Outcome::Unviable);
        results.retain(&["a", "b", "c", "d", "e", "f"].map(str::to_owned).into());
        assert_eq!(results.share(), Some(75));
        assert_eq!(results.with(Outcome::Missed).collect::<Vec<_>>(), ["a"]);
        assert_eq!(
            results.figure(),
            "3 of 4 caught (75 %), 1 of them by a timeout, 1 missed, 1 do not compile, 1 of 6 did not run"
        );
    }
}
