//! Runs the features of `test/e2e/features` on a real control plane, registry and the real binaries.
//!
//! The last line and those about failures have the format of the standard test runner, so that totals and failures of all suites can
//! be collected.

#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::unused_async,
    reason = "a step fails by panicking, and every step is a future"
)]

mod checks;
mod steps;
mod world;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cucumber::World as _;
use cucumber::cli::Opts;
use cucumber::event::ScenarioFinished;
use cucumber::writer::Stats as _;
use olm_proof::Report;

use crate::checks::Check;
use crate::world::OlmWorld;

/// Number of concurrent scenarios: they mostly wait.
const MAX_CONCURRENT: usize = 8;

/// Options in addition to those of cucumber.
#[derive(clap::Args)]
struct Options {
    /// Write the result as JSON to this file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Prints one line for each failure of a check, in the format of the standard test runner.
fn show(check: &str, failures: impl IntoIterator<Item = impl Display>) {
    for failure in failures {
        let failure = failure.to_string();
        let words: Vec<&str> = failure.split_whitespace().collect();
        println!("test {check}: {} ... FAILED", words.join(" "));
    }
}

/// Prints the figures, gaps and violations of a check.
fn print(check: &Check) {
    let figures = check.figures.iter();
    let figures: Vec<String> = figures.map(|(what, count)| format!("{count} {what}")).collect();
    println!(
        "{}: {}, {} violations",
        check.name,
        figures.join(", "),
        check.violations.len()
    );
    for gap in &check.gaps {
        println!("{}: {gap}", check.name);
    }
    let violations = check.violations.iter();
    show(
        check.name,
        violations.map(|violation| format!("{}: {}", violation.invariant, violation.text)),
    );
}

/// Returns the report of the run for docs/proof.md.
fn report(checks: Vec<Check>) -> Report {
    let mut report = Report {
        title: "Refinement: end-to-end runs on the simulated machine".to_owned(),
        about: "Each scenario runs the programs against a real API server and registry, whose audit log records every write. Afterwards, the \
                simulated API server gets the same states and writes and must answer as the real one did. Every write must belong to the \
                plan of its rollout, every change must keep the invariants, and every status the rules of kstatus."
            .to_owned(),
        command: "cargo test -p olm-e2e --test features -- --report FILE".to_owned(),
        ..Report::default()
    };
    for check in checks {
        let figures = check.figures.into_iter();
        report
            .figures
            .extend(figures.map(|(what, count)| (format!("{}: {what}", check.name), count.to_string())));
        report.violations.extend(check.violations);
        report.not_covered.extend(check.gaps);
    }
    report
}

#[tokio::main]
async fn main() -> ExitCode {
    let features = Path::new(env!("CARGO_MANIFEST_DIR")).join("features");
    let options = Opts::<_, _, _, Options>::parsed();
    let path = options.custom.report.clone();
    let result = OlmWorld::cucumber()
        .with_cli(options)
        .max_concurrent_scenarios(MAX_CONCURRENT)
        .fail_on_skipped()
        .after(|feature, _, scenario, event, world| {
            Box::pin(async move {
                let title = format!("{}: {}", feature.name, scenario.name);
                let error = match event {
                    ScenarioFinished::StepFailed(_, _, error) => Some(error),
                    _ => None,
                };
                if let Some(error) = error {
                    show("scenario", [format!("{title}: {error}")]);
                }
                if let Some(world) = world {
                    world.finish(&title, error.is_some()).await;
                }
            })
        })
        .run(features)
        .await;
    let scenarios = result.scenarios_stats();
    let errors = scenarios.failed + scenarios.skipped + result.parsing_errors() + result.hook_errors();
    let mut checks = checks::all().await;
    checks.iter().for_each(print);
    let failed = errors + checks.iter().map(|check| check.violations.len()).sum::<usize>();
    let passed = scenarios.passed;
    let failures = (errors > 0).then(|| format!("{errors} of the scenarios failed"));
    checks.insert(0, Check::new("scenarios", vec![("passed", passed)], failures));
    let written = path.map_or(Ok(()), |path| report(checks).write(&path));
    if let Err(error) = &written {
        show("report", [error]);
    }
    let is_good = failed == 0 && written.is_ok();
    let verdict = if is_good { "ok" } else { "FAILED" };
    println!("test result: {verdict}. {passed} passed; {failed} failed; 0 ignored");
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
