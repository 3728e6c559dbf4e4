//! Findings: what is wrong with an object, why, and what to do.

use serde::Serialize;

use crate::style::{Paint, Style};
use crate::table::Table;

/// Weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Severity {
    /// Something does not work.
    Error,
    /// Something will stop working, or works differently than expected.
    Warning,
    /// A check could not be made.
    Unchecked,
}

/// One finding about the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Finding {
    /// Weight.
    pub(crate) severity: Severity,
    /// Kind and name of the object.
    pub(crate) object: String,
    /// Cause.
    pub(crate) cause: String,
    /// Next step.
    pub(crate) next: String,
}

impl Finding {
    /// Creates a finding.
    pub(crate) fn new(
        severity: Severity,
        object: impl Into<String>,
        cause: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            object: object.into(),
            cause: cause.into(),
            next: next.into(),
        }
    }
}

/// Returns true if one of the findings is an error.
pub(crate) fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// Returns the findings as a table.
pub(crate) fn table(findings: &[Finding], style: Style) -> String {
    let mut table = Table::new(&["SEVERITY", "OBJECT", "CAUSE", "NEXT STEP"]);
    for finding in findings {
        let (word, paint) = match finding.severity {
            Severity::Error => ("Error", Paint::Bad),
            Severity::Warning => ("Warning", Paint::Warn),
            Severity::Unchecked => ("Unchecked", Paint::Dim),
        };
        table.row(paint, [word, &finding.object, &finding.cause, &finding.next]);
    }
    table.text(style, "")
}
