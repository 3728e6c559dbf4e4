//! Vectors in `skip-ranges.jsonl`: the ranges in `skipRange` of channel entries.

use super::version_ranges::Row;
use super::{Report, rows};
use olm_version::{SkipRange, parse_version};
use std::path::Path;

/// Runs the cases.
pub fn run(dir: &Path) -> Report {
    let mut report = Report::new("skip-ranges");
    for row in rows::<Row>(&dir.join("skip-ranges.jsonl"), &mut report) {
        report.count(row.differs(|range| {
            let range: SkipRange = range.parse().map_err(|error| format!("{error}"))?;
            Ok(Box::new(move |version: &str| {
                parse_version(version).is_ok_and(|version| range.matches(&version))
            }))
        }));
    }
    report
}
