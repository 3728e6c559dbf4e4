//! Validation of a whole catalog: every defect, with its place and the next step.
//!
//! Metas are added one at a time and a few hundred bytes of each are kept, so a catalog of any size can be validated.
//! All findings are returned at the end, in a fixed order. Missing bundles that an entry replaces or skips are normal
//! and give no finding.

mod bundle;
mod channel;
mod deprecation;
mod facts;
mod finding;
mod graph;
mod icon;
mod image;
mod package;
mod property;
mod raw;
mod report;
mod support;

pub use finding::{Finding, Rule, Severity};

use crate::Meta;
use package::Packages;
use report::Report;

/// Meta and its place.
#[derive(Debug, Clone, Copy)]
pub struct LocatedMeta<'a> {
    /// The file, as findings shall name it.
    pub file: &'a str,
    /// Line where the meta starts, from 1.
    pub line: u64,
    /// The meta.
    pub meta: &'a Meta,
}

/// Validates a catalog whose metas are all in memory; otherwise see [`Validator`].
pub fn validate<'a>(metas: impl IntoIterator<Item = LocatedMeta<'a>>) -> Vec<Finding> {
    let mut validator = Validator::default();
    for located in metas {
        validator.add(located);
    }
    validator.finish()
}

/// Validator of a catalog, meta by meta. Keeps only what the rules need, a few hundred bytes of each.
#[derive(Debug, Default)]
pub struct Validator {
    report: Report,
    packages: Packages,
}

impl Validator {
    /// Adds one meta.
    pub fn add(&mut self, located: LocatedMeta<'_>) {
        let place = self.report.place(located.file, located.line);
        self.packages.add(located.meta, place, &mut self.report);
    }

    /// Returns all findings, ordered by file, line, package, severity, rule and message.
    pub fn finish(mut self) -> Vec<Finding> {
        self.packages.check(&mut self.report);
        self.report.finish()
    }
}
