//! `validate`: findings in a catalog directory.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use olm_catalog_files::{WalkLimits, walk};
use olm_fbc::{Finding, Limits, LocatedMeta, Severity, Validator, decode};
use olm_text::counted;
use serde::Serialize;

use crate::cli::ValidateArgs;
use crate::failure::Failure;
use crate::report::Report;
use crate::source::SourceError;
use crate::style::{Paint, Style};
use crate::table::clean;

/// Row of the output: a finding of a rule, or an unreadable file.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct FindingRow {
    file: String,
    line: u64,
    severity: &'static str,
    rule: &'static str,
    package: String,
    message: String,
    hint: String,
}

/// Validates every file that catalogd would read; positive if there is no error.
pub(crate) fn run(args: &ValidateArgs, style: Style) -> Result<Report, Failure> {
    if !args.dir.is_dir() {
        return Err(SourceError::NotADirectory {
            path: args.dir.clone(),
        }
        .into());
    }
    let mut found = findings(&args.dir)?;
    let count = |severity: Severity| {
        found
            .iter()
            .filter(|shown| shown.severity == severity.as_str())
            .count()
    };
    let (errors, warnings, notes) = (
        count(Severity::Error),
        count(Severity::Warning),
        count(Severity::Note),
    );
    let positive = errors == 0 && (warnings == 0 || !args.strict);
    if !args.notes {
        found.retain(|shown| shown.severity != Severity::Note.as_str());
    }
    let mut text = String::new();
    for shown in &found {
        shown.write(&mut text, style);
    }
    let _ = write!(
        text,
        "{}, {}, {}",
        counted(errors, "error"),
        counted(warnings, "warning"),
        counted(notes, "note")
    );
    text.push_str(if notes > 0 && !args.notes {
        "; --notes shows them\n"
    } else {
        "\n"
    });
    let value = serde_json::json!({
        "findings": found,
        "errors": errors,
        "warnings": warnings,
        "notes": notes,
    });
    Ok(Report::new(value, text).positive(positive))
}

fn findings(root: &Path) -> Result<Vec<FindingRow>, SourceError> {
    let files = walk(root, &WalkLimits::default()).map_err(|source| SourceError::Walk {
        path: root.to_owned(),
        source: Box::new(source),
    })?;
    let mut validator = Validator::default();
    let mut shown = Vec::new();
    let mut metas = 0_usize;
    for (path, name) in files {
        let file = File::open(&path).map_err(|source| SourceError::Read { path, source })?;
        let mut decoder = decode(BufReader::new(file), &Limits::default());
        while let Some(meta) = decoder.next() {
            let line = decoder.line();
            match meta {
                Ok(meta) => {
                    metas += 1;
                    validator.add(LocatedMeta {
                        file: &name,
                        line,
                        meta: &meta,
                    });
                }
                Err(error) => shown.push(FindingRow {
                    file: name.clone(),
                    line,
                    severity: Severity::Error.as_str(),
                    rule: "unreadable",
                    package: String::new(),
                    message: olm_text::chain(&error),
                    hint:
                        "Write JSON objects or YAML documents, or exclude the file with .indexignore. The rest of \
                           the file was not checked."
                            .to_owned(),
                }),
            }
        }
    }
    if metas == 0 && shown.is_empty() {
        shown.push(FindingRow::empty(root));
    }
    shown.extend(validator.finish().into_iter().map(FindingRow::of));
    shown.sort();
    Ok(shown)
}

impl FindingRow {
    /// Returns the error about a directory without a catalog.
    fn empty(root: &Path) -> Self {
        Self {
            file: root.display().to_string(),
            line: 1,
            severity: Severity::Error.as_str(),
            rule: "empty",
            package: String::new(),
            message: "the directory contains no catalog objects".to_owned(),
            hint: "Give the directory with the catalog's JSON or YAML files; files that .indexignore excludes are ignored."
                .to_owned(),
        }
    }

    fn of(finding: Finding) -> Self {
        Self {
            file: finding.file,
            line: finding.line,
            severity: finding.severity.as_str(),
            rule: finding.rule.as_str(),
            package: finding.package,
            message: finding.message,
            hint: finding.hint,
        }
    }

    /// Writes a finding in the order of compilers: place, message, next step.
    fn write(&self, text: &mut String, style: Style) {
        let paint = match self.severity {
            "error" => Paint::Bad,
            "warning" => Paint::Warn,
            _ => Paint::Dim,
        };
        let package = match self.package.as_str() {
            "" => String::new(),
            package => format!("package {}: ", clean(package)),
        };
        let _ = writeln!(
            text,
            "{}:{}: {} {package}{} [{}]",
            clean(&self.file),
            self.line,
            style.paint(paint, &format!("{}:", self.severity)),
            clean(&self.message),
            self.rule
        );
        if !self.hint.is_empty() {
            let _ = writeln!(text, "    {}", style.paint(Paint::Dim, &clean(&self.hint)));
        }
    }
}
