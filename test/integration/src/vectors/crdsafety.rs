//! CRD upgrade safety: the verdict on recorded pairs of CRDs.
//!
//! Verdicts must be equal. Where upstream's texts are stable, the places and rules it names must be ours
//! too; the tails of messages are free, upstream's own are random in places.

use std::collections::BTreeSet;
use std::path::Path;

use olm_bundle::crd_safety::{self, Finding};
use serde::Deserialize;
use serde_json::Value;

use super::Report;

#[derive(Deserialize)]
struct Row {
    id: String,
    ok: bool,
    #[serde(default)]
    messages: Option<Vec<String>>,
    #[serde(default)]
    unstable: bool,
    #[serde(default)]
    panic: Option<Value>,
    old: Value,
    new: Value,
}

/// Runs `crdsafety.jsonl`. A case that makes upstream panic counts as equal when it does not make us.
pub fn run(dir: &Path) -> Report {
    let mut report = Report::new("crdsafety");
    let path = dir.join("crdsafety.jsonl");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            report.wrong.push(format!("{}: {error}", path.display()));
            return report;
        }
    };
    for line in text.lines() {
        match serde_json::from_str::<Row>(line) {
            Ok(row) => report.count(difference(&row).map(|text| format!("{}: {text}", row.id))),
            Err(error) => report.wrong.push(format!("unreadable row: {error}")),
        }
    }
    report
}

fn difference(row: &Row) -> Option<String> {
    let findings = crd_safety::check(&row.old, &row.new);
    if row.panic.is_some() {
        return None;
    }
    let Some(messages) = row.messages.as_ref().filter(|_| !row.unstable) else {
        return (row.ok != findings.is_empty()).then(|| format!("verdict differs, ours: {findings:?}"));
    };
    let ours: BTreeSet<String> = findings.iter().map(place).collect();
    let theirs: BTreeSet<String> = messages.iter().map(|message| place_of(message)).collect();
    let extra: Vec<_> = ours.difference(&theirs).collect();
    let missing: Vec<_> = theirs.difference(&ours).collect();
    let verdict = if row.ok == findings.is_empty() {
        ""
    } else {
        "verdict differs, "
    };
    (!verdict.is_empty() || !extra.is_empty() || !missing.is_empty())
        .then(|| format!("{verdict}ours only {extra:?}, recorded only {missing:?}"))
}

/// Path and rule of a finding.
fn place(finding: &Finding) -> String {
    if finding.path.is_empty() {
        finding.to_string()
    } else {
        format!("{}: {}", finding.path, finding.rule)
    }
}

/// Path and rule of a recorded message; the whole message where it has no path.
fn place_of(message: &str) -> String {
    let mut parts = message.splitn(4, ": ");
    match (parts.next(), parts.next(), parts.next()) {
        (Some(version), Some(path), Some(rule)) if path.starts_with('^') => {
            format!("{version}: {path}: {rule}")
        }
        _ => message.to_owned(),
    }
}
