//! Reports of the parts of the proof.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Violation;

/// Result of one part of the proof, stored as JSON. `cargo xtask prove` reads it and writes its section of docs/proof.md.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Title of the part's section.
    pub title: String,
    /// One or two sentences about what the part explores and how.
    pub about: String,
    /// Figures in order: the name of each, and its value with the unit.
    pub figures: Vec<(String, String)>,
    /// Broken invariants and failed checks.
    pub violations: Vec<Violation>,
    /// Gaps of the part: one sentence for each thing that the part does not show.
    pub not_covered: Vec<String>,
    /// Command that repeats the part.
    #[serde(default)]
    pub command: String,
    /// Origin of the results, which `cargo xtask prove` adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Ran>,
    /// Progress from which a later run of the same code continues, in a form that the part defines; null if every run starts
    /// anew.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub state: Value,
}

/// Commit, code, date and duration of a run of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Commit of the checkout.
    pub commit: String,
    /// Date of the run.
    pub date: String,
    /// Duration of all runs that the results come from, in seconds.
    pub seconds: u64,
    /// Digests of the code that the part covers, by folder.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub code: BTreeMap<String, String>,
}

impl Report {
    /// Replaces the report at `path`. If the write is interrupted, the former report stays.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let unfinished = path.with_extension("unfinished");
        fs::write(&unfinished, serde_json::to_vec_pretty(self)?)?;
        fs::rename(&unfinished, path)
    }

    /// Reads the report from `path`.
    ///
    /// # Errors
    /// The file cannot be read, or does not contain a report.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Report;

    #[test]
    fn a_file_keeps_the_report_with_its_state() {
        let report = Report {
            title: "Title".into(),
            figures: vec![("sequences".into(), "2".into())],
            state: json!({"done": [[1, 2]]}),
            ..Report::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        report.write(&path).unwrap();
        report.write(&path).unwrap();
        assert_eq!(Report::read(&path).unwrap(), report);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
