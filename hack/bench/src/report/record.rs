//! The record of a whole run, stored as JSON. Later runs are compared with the record of an earlier one, the baseline.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::compare::Change;
use super::machine::Machine;
use super::other_load::OtherLoad;
use super::row::{Row, find};
use super::table::{Columns, value};

/// Figures of one run, and its circumstances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The machine.
    pub machine: Machine,
    /// Commit of the measured programs, followed by `+` if there were uncommitted changes.
    pub commit: String,
    /// Time of the start of the run.
    pub date: String,
    /// Target and profile of the measured programs, such as `x86_64-unknown-linux-musl, release`.
    pub build: String,
    /// Number of extensions, on which all other sizes depend.
    pub extensions: u32,
    /// Number of runs of each group.
    pub times: u32,
    /// Other load during each group.
    pub load: Vec<OtherLoad>,
    /// Figures of this product.
    pub rows: Vec<Row>,
    /// Figures of another implementation in the same run, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// Groups that failed, each with the reason. Their figures are incomplete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// Figures of another implementation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Command that starts the implementation.
    pub command: String,
    /// Figures of the implementation.
    pub rows: Vec<Row>,
}

impl Record {
    /// Reads a record; `None` if there is no such file.
    ///
    /// # Errors
    /// The file is unreadable or does not contain a record.
    pub fn load(path: &Path) -> Result<Option<Self>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let record = serde_json::from_str(&text);
        record
            .map(Some)
            .with_context(|| format!("{} is no record of a run", path.display()))
    }

    /// Writes the record as JSON.
    ///
    /// # Errors
    /// The file is not writable.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns all figures as columns of a table.
    pub fn columns<'a>(&'a self, baseline: Option<&'a Self>) -> Columns<'a> {
        Columns {
            ours: &self.rows,
            beside: self.beside.as_ref().map(|beside| beside.rows.as_slice()),
            baseline: baseline.map(|baseline| baseline.rows.as_slice()),
        }
    }

    /// Returns a sentence for each row that is worse than in the baseline by more than `percent`.
    pub fn worse_than(&self, baseline: &Self, percent: f64) -> Vec<String> {
        let worse = |row: &Row| {
            let before = find(&baseline.rows, row)?;
            let change = Change::of(row, before);
            change.is_worse_by(percent).then(|| {
                format!(
                    "{}, {}: {} {} instead of {}, {change}",
                    row.group,
                    row.work,
                    row.measure.label(),
                    value(row.measure, row.median()),
                    value(row.measure, before.median()),
                )
            })
        };
        self.rows.iter().filter_map(worse).collect()
    }

    /// Returns the reasons why figures of the baseline cannot be compared with those of this record.
    pub fn differences(&self, baseline: &Self) -> Vec<String> {
        let mut reasons = Vec::new();
        let mut compare = |what: &str, own: &str, other: &str| {
            if own != other {
                reasons.push(format!("{what} {own}, the baseline has {other}"));
            }
        };
        let text = |number: u32| number.to_string();
        compare(
            "machine",
            &self.machine.to_string(),
            &baseline.machine.to_string(),
        );
        compare("build", &self.build, &baseline.build);
        compare("extensions", &text(self.extensions), &text(baseline.extensions));
        reasons
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::report::row::Measure;
    use crate::report::row::tests::row;

    pub(in crate::report) fn record(figure: f64) -> Record {
        Record {
            commit: "0123456789ab".to_owned(),
            build: "release".to_owned(),
            extensions: 200,
            times: 1,
            rows: vec![row("install", Measure::Time, &[figure])],
            ..Record::default()
        }
    }

    #[test]
    fn a_record_survives_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("baseline.json");
        assert_eq!(Record::load(&path).unwrap(), None);
        record(1.0).save(&path).unwrap();
        assert_eq!(Record::load(&path).unwrap(), Some(record(1.0)));
        fs::write(&path, "{}").unwrap();
        let error = Record::load(&path).unwrap_err();
        assert!(error.to_string().ends_with("is no record of a run"), "{error}");
    }

    #[test]
    fn rows_beyond_the_limit_are_named() {
        assert_eq!(
            record(1.5).worse_than(&record(1.0), 20.0),
            ["group, install: time 1.50 s instead of 1.00 s, +50 % (worse)"]
        );
        assert!(record(1.5).worse_than(&record(1.0), 60.0).is_empty());
        assert!(record(0.5).worse_than(&record(1.0), 20.0).is_empty());
    }

    #[test]
    fn other_circumstances_are_told() {
        let other = Record {
            build: "proof".to_owned(),
            ..record(1.0)
        };
        assert!(record(1.0).differences(&record(2.0)).is_empty());
        assert_eq!(
            record(1.0).differences(&other),
            ["build release, the baseline has proof"]
        );
    }
}
