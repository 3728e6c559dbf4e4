//! `doctor`: findings about the controllers and what they need.

use std::fmt::Write as _;

use olm_text::counted;
use serde_json::json;

use crate::cli::controllers::DoctorArgs;
use crate::doctor;
use crate::failure::Failure;
use crate::finding::{self, Severity};
use crate::report::Report;
use crate::source::Cluster;
use crate::style::{Paint, Style};

/// Diagnoses the installation; positive if there are neither errors nor warnings.
pub(crate) async fn run(args: DoctorArgs, style: Style) -> Result<Report, Failure> {
    let cluster = Cluster::connect(&args.access).await?;
    let findings = doctor::findings(&doctor::read(&cluster).await?);
    let count = |severity| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let unchecked = count(Severity::Unchecked);
    let mut text = String::new();
    if !findings.is_empty() {
        text = format!("{}\n", finding::table(&findings, style));
    }
    let positive = errors + warnings == 0;
    let verdict = if positive {
        style.paint(Paint::Good, "no problem found")
    } else {
        style.paint(
            Paint::Bad,
            &format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
        )
    };
    text.push_str(&verdict);
    if unchecked > 0 {
        // Writing into a String cannot fail.
        let _ = write!(text, "; {} not made", counted(unchecked, "check"));
    }
    text.push('\n');
    Ok(Report::new(json!({"findings": findings}), text).positive(positive))
}
