//! Result of one part of a proof.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Violation;

/// Result of one part of a proof. `cargo xtask prove` reads it as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Title of the part's section.
    pub title: String,
    /// One or two sentences about what the part explores and how.
    pub about: String,
    /// Figures: what is counted, and the count or measure with its unit.
    pub figures: Vec<(String, String)>,
    /// Broken invariants.
    pub violations: Vec<Violation>,
    /// Gaps of the part, a sentence each.
    pub not_covered: Vec<String>,
    /// Command that repeats the part.
    #[serde(default)]
    pub command: String,
    /// Commit, date and duration of the run; `cargo xtask prove` adds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Ran>,
}

/// Commit, date and duration of a run of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Commit of the checkout.
    pub commit: String,
    /// Date.
    pub date: String,
    /// Duration in seconds.
    pub seconds: u64,
}

impl Report {
    /// Writes the report to `path`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_vec_pretty(self)?)
    }

    /// Reads the report from `path`.
    ///
    /// # Errors
    /// The file cannot be read, or is no report.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }
}
