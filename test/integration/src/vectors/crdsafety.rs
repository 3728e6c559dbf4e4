//! Vectors of CRD upgrade safety: recorded pairs of CRDs.
//!
//! With upstream's rules, the results must be equal. If upstream's messages are stable, paths and rules must also match. The ends
//! of messages are not compared, because those of upstream are partly random. With this project's rules, findings may be fewer in
//! the cases that docs/deviations.md lists, as `passes` or as the number of missing paths. Findings about a new storage version are
//! listed as the number of additional paths.

use std::collections::BTreeSet;
use std::path::Path;

use olm_bundle::crd_safety::{self, Finding, Rules};
use serde::Deserialize;
use serde_json::Value;

use super::{Report, deviations, rows};

const KIND: &str = "crdsafety";
const FILE: &str = "crdsafety.jsonl";
/// Part of the path of a finding that only this project has.
const NEW_STORAGE: &str = " with the new storage version: ";

/// A case: the old and the new CRD, and upstream's answer.
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

/// Runs `crdsafety.jsonl` with this project's rules.
pub fn run(dir: &Path) -> Report {
    let mut report = Report::new(KIND);
    let listed = deviations::listed(KIND);
    for row in rows::<Row>(&dir.join(FILE), &mut report) {
        let upstream = places(&crd_safety::check(&row.old, &row.new, Rules::Upstream));
        let ours = places(&crd_safety::check(&row.old, &row.new, Rules::Ours));
        let more: Vec<&String> = ours.difference(&upstream).collect();
        if let Some(more) = more.iter().find(|place| !place.contains(NEW_STORAGE)) {
            report.count(Some(format!("{}: named only by us: {more}", row.id)));
            continue;
        }
        let fewer = upstream.difference(&ours).count();
        let answer = match (more.len(), fewer) {
            (0, 0) => None,
            (0, _) if ours.is_empty() => Some("passes".to_owned()),
            (0, fewer) => Some(format!("{fewer} fewer")),
            (more, 0) => Some(format!("{more} more")),
            (more, fewer) => Some(format!("{more} more, {fewer} fewer")),
        };
        let stated = listed.get(row.id.as_str()).copied();
        report.count_listed(&row.id, answer.clone(), &answer.unwrap_or_default(), stated);
    }
    report
}

/// Runs `crdsafety.jsonl` with upstream's rules. A case that makes upstream panic counts as equal if it does not
/// panic here.
pub fn run_upstream(dir: &Path) -> Report {
    let mut report = Report::new("crdsafety-upstream");
    for row in rows::<Row>(&dir.join(FILE), &mut report) {
        report.count(difference(&row).map(|text| format!("{}: {text}", row.id)));
    }
    report
}

fn difference(row: &Row) -> Option<String> {
    let findings = crd_safety::check(&row.old, &row.new, Rules::Upstream);
    if row.panic.is_some() {
        return None;
    }
    let Some(messages) = row.messages.as_ref().filter(|_| !row.unstable) else {
        return (row.ok != findings.is_empty()).then(|| format!("verdict differs, ours: {findings:?}"));
    };
    let ours = places(&findings);
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

/// Returns the paths and rules of findings.
fn places(findings: &[Finding]) -> BTreeSet<String> {
    findings.iter().map(place).collect()
}

/// Returns the path and the rule of a finding.
fn place(finding: &Finding) -> String {
    if finding.path.is_empty() {
        finding.to_string()
    } else {
        format!("{}: {}", finding.path, finding.rule)
    }
}

/// Returns the path and the rule of a recorded message, or the whole message if it has no path.
fn place_of(message: &str) -> String {
    let mut parts = message.splitn(4, ": ");
    match (parts.next(), parts.next(), parts.next()) {
        (Some(version), Some(path), Some(rule)) if path.starts_with('^') => {
            format!("{version}: {path}: {rule}")
        }
        _ => message.to_owned(),
    }
}
