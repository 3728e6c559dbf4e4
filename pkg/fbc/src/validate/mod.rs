//! Validation of a whole catalog as its authors know it: every fault, with its place and the next step.
//!
//! Metas come in one at a time and only a few hundred bytes of each stay, so a catalog of any size can be
//! validated; all findings come out at the end, in a fixed order. Absent bundles that an entry replaces or skips are normal and no finding.

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

pub use finding::{Finding, Rule, Severity};

use crate::Meta;
use package::Packages;
use report::Report;

/// A meta and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Located<'a> {
    /// The file, as findings shall name it.
    pub file: &'a str,
    /// The line where the meta starts, from 1.
    pub line: u64,
    /// The meta.
    pub meta: &'a Meta,
}

/// Validates a catalog of which all metas are at hand. Where they are not, see [`Validator`].
pub fn validate<'a>(metas: impl IntoIterator<Item = Located<'a>>) -> Vec<Finding> {
    let mut validator = Validator::default();
    for located in metas {
        validator.add(located);
    }
    validator.finish()
}

/// Validates a catalog meta by meta: keeps what the rules need, a few hundred bytes of each.
#[derive(Debug, Default)]
pub struct Validator {
    report: Report,
    packages: Packages,
}

impl Validator {
    /// Takes in one meta.
    pub fn add(&mut self, located: Located<'_>) {
        let place = self.report.place(located.file, located.line);
        self.packages.add(located.meta, place, &mut self.report);
    }

    /// Every finding, ordered by file, line, package, severity, rule and message.
    pub fn finish(mut self) -> Vec<Finding> {
        self.packages.check(&mut self.report);
        self.report.finish()
    }
}
