//! Collector of findings, with places of a few bytes.

use super::finding::{Finding, Rule};
use std::collections::HashMap;

/// Place of a meta; small, because one is kept for every bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    file: usize,
    line: u64,
}

/// Findings so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    files: Vec<String>,
    numbers: HashMap<String, usize>,
    findings: Vec<Finding>,
}

impl Report {
    /// Returns the place `line` of `file`.
    pub(super) fn place(&mut self, file: &str, line: u64) -> Place {
        let known = self.numbers.get(file).copied();
        let number = known.unwrap_or_else(|| {
            let number = self.files.len();
            self.files.push(file.to_owned());
            self.numbers.insert(file.to_owned(), number);
            number
        });
        Place { file: number, line }
    }

    /// Returns `FILE:LINE`, for messages that name a second place.
    pub(super) fn name(&self, place: Place) -> String {
        format!("{}:{}", self.file(place), place.line)
    }

    /// Adds a finding of `rule`.
    pub(super) fn add(&mut self, place: Place, package: &str, rule: Rule, message: String, hint: &str) {
        let file = self.file(place).to_owned();
        self.findings.push(Finding {
            file,
            line: place.line,
            package: package.to_owned(),
            severity: rule.severity(),
            rule,
            message,
            hint: hint.to_owned(),
        });
    }

    /// Returns all findings in their order.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        self.findings.sort();
        self.findings.dedup();
        self.findings
    }

    fn file(&self, place: Place) -> &str {
        self.files.get(place.file).map_or("", String::as_str)
    }
}
