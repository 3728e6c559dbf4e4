//! Results of cases, added up and stored in the report, so that a run continues an earlier run of the same code.

mod numbers;
mod tally;

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use olm_proof::{Report, Violation};
use serde::{Deserialize, Serialize};

pub use numbers::Numbers;
pub use tally::Tally;

/// Results as the state of the report stores them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// Digest of the code and the settings of the run; empty if the code is unknown.
    code: String,
    tally: Tally,
}

/// Results of this run and of earlier runs of the same code. The report is written after each case.
#[derive(Debug)]
pub struct Results {
    /// File of the report, if any.
    path: Option<PathBuf>,
    kept: Kept,
    violations: Vec<Violation>,
    /// Makes a report, without violations, from the sums.
    describe: fn(&Tally) -> Report,
    /// Figures besides those of the sums.
    figures: Vec<(String, String)>,
    command: String,
}

impl Results {
    /// Continues the report at `path` if it is about the same code and settings. Otherwise, or if `code` is empty, starts a new
    /// report.
    #[must_use]
    pub fn open(path: Option<PathBuf>, code: String, describe: fn(&Tally) -> Report) -> Self {
        let former = path.as_deref().and_then(|path| Report::read(path).ok());
        let former = former.and_then(|report| {
            let kept: Kept = serde_json::from_value(report.state).ok()?;
            (!code.is_empty() && kept.code == code).then_some((kept, report.violations))
        });
        let (kept, violations) = former.unwrap_or_else(|| {
            let tally = Tally::default();
            (Kept { code, tally }, Vec::new())
        });
        Self {
            path,
            kept,
            violations,
            describe,
            figures: Vec::new(),
            command: String::new(),
        }
    }

    /// Adds figures to those of the sums.
    #[must_use]
    pub fn with_figures(mut self, figures: Vec<(String, String)>) -> Self {
        self.figures = figures;
        self
    }

    /// Sets the command that repeats the run.
    #[must_use]
    pub fn with_command(mut self, command: String) -> Self {
        self.command = command;
        self
    }

    /// Returns true if the case of the series has a result.
    #[must_use]
    pub fn has(&self, series: &str, case: u64) -> bool {
        self.kept.tally.has(series, case)
    }

    /// Adds the sums and violations of a case, and writes the report.
    ///
    /// # Errors
    /// The report cannot be written.
    pub fn add(&mut self, tally: &Tally, violations: Vec<Violation>) -> Result<()> {
        self.kept.tally.merge(tally);
        self.violations.extend(violations);
        self.save().map(drop)
    }

    /// Writes the report, and returns it.
    ///
    /// # Errors
    /// The report cannot be written.
    pub fn save(&self) -> Result<Report> {
        let mut report = (self.describe)(&self.kept.tally);
        report.figures.extend(self.figures.iter().cloned());
        report.violations.clone_from(&self.violations);
        report.command.clone_from(&self.command);
        report.state = serde_json::to_value(&self.kept)?;
        if let Some(path) = &self.path {
            report
                .write(path)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(tally: &Tally) -> Report {
        Report {
            figures: vec![("kills".to_owned(), tally.count("kills").to_string())],
            ..Report::default()
        }
    }

    fn case(number: u64) -> Tally {
        let mut tally = Tally::default();
        tally.end("moments", number);
        tally.add("kills", 1);
        tally
    }

    #[test]
    fn a_run_continues_the_report_of_the_same_code_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        let open = |code: &str| Results::open(Some(path.clone()), code.to_owned(), describe);
        let violation = Violation {
            invariant: "rest".to_owned(),
            seed: "1".to_owned(),
            text: "goes on".to_owned(),
        };
        open("a").add(&case(1), vec![violation]).unwrap();
        let mut second = open("a");
        assert!(second.has("moments", 1) && !second.has("moments", 2));
        second.add(&case(2), Vec::new()).unwrap();
        let report = Report::read(&path).unwrap();
        assert_eq!(report, second.save().unwrap());
        assert_eq!(report.figures, [("kills".to_owned(), "2".to_owned())]);
        assert_eq!(report.violations.len(), 1);
        assert!(!open("").has("moments", 1) && !open("b").has("moments", 1));
        assert!(open("b").save().unwrap().violations.is_empty());
    }
}
