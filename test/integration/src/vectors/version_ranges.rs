//! Vectors in `version-ranges.jsonl`: the ranges in `spec.source.catalog.version`.

use super::{Report, rows};
use olm_version::{VersionRange, VersionRelease, parse_version};
use serde::Deserialize;
use std::path::Path;

/// A case: a range, a version, and upstream's answer. The skip ranges use the same type.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Row {
    pub(crate) range: String,
    pub(crate) version: String,
    pub(crate) matches: Option<bool>,
    pub(crate) error: Option<String>,
    pub(crate) version_error: Option<String>,
}

/// Runs the cases.
pub fn run(dir: &Path) -> Report {
    let mut report = Report::new("version-ranges");
    for row in rows::<Row>(&dir.join("version-ranges.jsonl"), &mut report) {
        report.count(row.differs(|range| {
            let range: VersionRange = range.parse().map_err(|error| format!("{error}"))?;
            Ok(Box::new(move |version: &str| {
                VersionRelease::parse_legacy(version).is_ok_and(|version| range.matches(&version))
            }))
        }));
    }
    report
}

/// A parsed range: a predicate on versions.
type Test = Box<dyn Fn(&str) -> bool>;

impl Row {
    /// Returns the difference from upstream's answer, if any. `parse` parses the range.
    pub(crate) fn differs(&self, parse: impl Fn(&str) -> Result<Test, String>) -> Option<String> {
        let expected = (self.matches, self.error.clone(), self.version_error.clone());
        let found = match (parse(&self.range), parse_version(&self.version)) {
            (Err(error), _) => (None, Some(error), None),
            (Ok(_), Err(error)) => (None, None, Some(error.to_string())),
            (Ok(test), Ok(_)) => (Some(test(&self.version)), None, None),
        };
        (found != expected).then(|| {
            format!(
                "{:?} on {:?}: {found:?}, upstream {expected:?}",
                self.range, self.version
            )
        })
    }
}
