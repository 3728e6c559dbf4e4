//! Writes the text of docs/proof.md. This module is pure.

use std::fmt::Write as _;

use olm_proof::{INVARIANTS, Report};

use super::holds::Holds;
use super::part::{AddsUp, Part};

const INTRODUCTION: &str = "\
# Proof

The evidence that the controllers are right at every crash, delay and lie, with the figures of the last runs. `cargo xtask prove` runs
all parts and writes this page from their reports, which are kept in [proof](proof); `--only PART` runs one of them, `--short` takes
seconds. A part that was not run says so. Results of `world`, `explore`, `planted`, `proxy`, `moments`, `mutants` and `fuzz` add up over runs
of the same code; `--anew` forgets them. The time of `planted`, `mutants` and `fuzz` also counts their runs on earlier code. Arguments
after `--` replace those of a part: `cargo xtask prove --only explore -- --limit-seconds 600 --single-faults 100` explores for ten more
minutes.

`--page` runs nothing and compares the code that each part covers with the checkout: crates without their comments and tests. Versions of
external crates are not compared.
";

/// Checks that need more than the accepted changes: name and rule. They are part of test/simulation; runs against a real API server make
/// the last two.
const CHECKS: [(&str, &str); 7] = [
    (
        "account",
        "The objects of an extension are written with the rights of its account alone.",
    ),
    (
        "quiet-hour",
        "Nothing is written in the hour after the cluster has come to rest.",
    ),
    ("panic", "No task of a controller panics."),
    ("process", "No process of a controller ends by itself."),
    (
        "rest",
        "The cluster comes to rest within 40 minutes after the last step of users and the last fault, and within 10,000 calls of the run.",
    ),
    (
        "equal-states",
        "A spec leads to the same state at each visit with the same bundle.",
    ),
    (
        "convergence",
        "At rest, the objects and their statuses are what the resolver and the renderer alone say.",
    ),
];

/// A part, its last report, and the relation of the report's code to the checkout.
pub(super) type Row<'a> = (&'a Part, Option<Report>, Option<Holds>);

/// Returns the page.
pub(super) fn page(parts: &[Row], machine: &str) -> String {
    let mut page = format!("{INTRODUCTION}\nMachine: {machine}.\n\n## Result\n\n");
    page.push_str("| part | commit | date | time | violations | code |\n|---|---|---|---|---|---|\n");
    for (part, report, holds) in parts {
        row(&mut page, part, report.as_ref(), holds.as_ref());
    }
    invariants(&mut page);
    for (part, report, _) in parts {
        section(&mut page, part, report.as_ref());
    }
    page
}

/// Adds the row of a part to the table of results.
fn row(page: &mut String, part: &Part, report: Option<&Report>, holds: Option<&Holds>) {
    let name = part.name;
    let Some(report) = report else {
        let _ = writeln!(page, "| {name} | | | | not run | |");
        return;
    };
    let (commit, date, time) = report.ran.as_ref().map_or_else(Default::default, |ran| {
        (ran.commit.clone(), ran.date.clone(), duration(ran.seconds))
    });
    let broken = match report.violations.len() {
        0 => "none".to_owned(),
        count => count.to_string(),
    };
    let code = match holds {
        // Only the last run had this code, perhaps; earlier results stay.
        Some(Holds::Same) if part.adds_up == AddsUp::OfEachResult => "its section says, by result".to_owned(),
        holds => holds.map(Holds::text).unwrap_or_default(),
    };
    let _ = writeln!(
        page,
        "| [{name}](#{}) | {commit} | {date} | {time} | {broken} | {code} |",
        anchor(&report.title)
    );
}

/// Adds the tables of invariants and checks.
fn invariants(page: &mut String) {
    page.push_str(
        "\n## Invariants\n\nThe simulated and the real runs check these rules at every change that the API server accepts.\n\n\
         | name | rule |\n|---|---|\n",
    );
    for (name, rule) in INVARIANTS {
        let _ = writeln!(page, "| {name} | {rule} |");
    }
    page.push_str("\nThe simulation also checks these rules, and the runs against a real API server the last two.\n\n| name | rule |\n|---|---|\n");
    for (name, rule) in CHECKS {
        let _ = writeln!(page, "| {name} | {rule} |");
    }
}

/// Adds the section of a part, if it has a report.
fn section(page: &mut String, part: &Part, report: Option<&Report>) {
    let Some(report) = report else {
        return;
    };
    let _ = writeln!(page, "\n## {}\n\n{}\n", report.title, report.about.trim());
    let _ = writeln!(page, "Command: `{}`\n", part.shown());
    if report.ran.is_some() && report.command != part.shown() && !report.command.is_empty() {
        let _ = writeln!(page, "This run: `{}`\n", report.command);
    }
    page.push_str("| what | figure |\n|---|---|\n");
    for (what, figure) in &report.figures {
        let _ = writeln!(page, "| {} | {} |", cell(what), cell(figure));
    }
    if !report.violations.is_empty() {
        page.push_str("\nViolations:\n\n");
        for violation in &report.violations {
            let _ = writeln!(
                page,
                "- {} (seed {}): {}",
                violation.invariant,
                violation.seed,
                cell(&violation.text)
            );
        }
    }
    if !report.not_covered.is_empty() {
        page.push_str("\nNot covered:\n\n");
        for sentence in &report.not_covered {
            let _ = writeln!(page, "- {}", cell(sentence));
        }
    }
}

/// Returns the text with characters escaped or replaced that would end a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

/// Returns the anchor that GitHub gives a heading.
fn anchor(title: &str) -> String {
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

fn duration(seconds: u64) -> String {
    match seconds {
        // Not measured.
        0 => String::new(),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use olm_proof::{Ran, Violation};

    use super::super::part::named;
    use super::*;

    #[test]
    fn a_page_names_every_part_with_its_figures_and_violations() {
        let report = Report {
            title: "Kill -9 at any moment".to_owned(),
            about: "About.".to_owned(),
            figures: vec![("moments".to_owned(), "7 | 8".to_owned())],
            violations: vec![Violation {
                invariant: "newest-stays".to_owned(),
                seed: "42".to_owned(),
                text: "gone".to_owned(),
            }],
            not_covered: vec!["Power loss.".to_owned()],
            command: String::new(),
            ran: Some(Ran {
                commit: "abc".to_owned(),
                date: "2026-01-02".to_owned(),
                seconds: 3700,
                ..Ran::default()
            }),
            ..Report::default()
        };
        let text = page(
            &[
                (named("world").unwrap(), None, None),
                (named("moments").unwrap(), Some(report), Some(Holds::Same)),
            ],
            "2 cores",
        );
        for line in [
            "| world | | | | not run | |",
            "| [moments](#kill--9-at-any-moment) | abc | 2026-01-02 | 1 h 1 min | 1 | this code |",
            "| moments | 7 \\| 8 |",
            "- newest-stays (seed 42): gone",
            "- Power loss.",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(text.contains("| no-downgrade |"), "the invariants are listed");
    }
}
