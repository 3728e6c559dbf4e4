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

mod steps;
mod world;

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use cucumber::World as _;
use cucumber::writer::Stats as _;
use tokio::time::Instant;

use olm_e2e::{changes, plans, refinement};
use olm_proof::{Invariants, Settings, Violation};

use crate::world::OlmWorld;

/// Number of concurrent scenarios: they mostly wait.
const MAX_CONCURRENT: usize = 8;
/// Longest wait for the garbage collector at the end: it looks for new kinds every half a minute, and waits as long again if a CRD goes
/// meanwhile.
const GARBAGE: Duration = Duration::from_mins(3);
/// The invariant that an object outlives its extension.
const NOTHING_LEFT: &str = "nothing-left";

/// Prints a line for each failure of a check, in the format of the standard test runner.
fn show(check: &str, failures: impl IntoIterator<Item = impl Display>) {
    for failure in failures {
        println!("test {check}: {failure} ... FAILED");
    }
}

/// Checks all statuses of the run against the rules of kstatus; returns the number of inconsistencies.
async fn status_faults() -> usize {
    let Ok(environment) = olm_e2e::environment::Environment::shared().await else {
        return 1;
    };
    let (objects, versions) = environment.history.size();
    let faults = environment.history.faults();
    println!(
        "[Statuses] {versions} of {objects} ClusterExtensions, {} wrong",
        faults.len()
    );
    show("statuses", &faults);
    // A run of scenarios without extensions has no statuses to check.
    faults.len()
}

/// Holds the writes of the run against the plans of its rollouts and against the invariants; returns the number of violations.
async fn write_faults() -> usize {
    let Ok(environment) = olm_e2e::environment::Environment::shared().await else {
        return 1;
    };
    match writes_at_rest(&environment.control_plane.audit_log()).await {
        Ok((writes, verdict)) => plan_faults(&writes) + verdict.faults() + refinement_faults(&writes),
        Err(error) => {
            show("audit log", [format!("{error:#}")]);
            1
        }
    }
}

/// Reads the writes of the run when the garbage collector is done, and holds them against the invariants.
async fn writes_at_rest(audit_log: &Path) -> anyhow::Result<(Vec<plans::Write>, Verdict)> {
    let deadline = Instant::now() + GARBAGE;
    loop {
        let writes = plans::read(audit_log)?;
        let verdict = Verdict::of(&writes);
        if !verdict.waits_for_garbage_collector() || Instant::now() >= deadline {
            return Ok((writes, verdict));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Compares the writes of operator-controller with the plans of its rollouts; returns the number of violations.
fn plan_faults(writes: &[plans::Write]) -> usize {
    let verdict = plans::check(writes);
    println!("{verdict}");
    show("plans", verdict.outside.iter().chain(&verdict.undone));
    verdict.faults()
}

/// Verdict of the invariants on the changes of the run.
struct Verdict {
    changes: usize,
    violations: Vec<Violation>,
}

impl Verdict {
    /// Holds every change against the invariants.
    fn of(writes: &[plans::Write]) -> Self {
        let changes = changes::of(writes);
        let mut invariants = Invariants::new(Settings::default());
        let mut violations: Vec<_> = changes
            .iter()
            .flat_map(|change| invariants.observe(change))
            .collect();
        violations.extend(invariants.finish());
        Self {
            changes: changes.len(),
            violations,
        }
    }

    /// Reports whether an object is left of a deleted owner, which may still go.
    fn waits_for_garbage_collector(&self) -> bool {
        self.violations
            .iter()
            .any(|violation| violation.invariant == NOTHING_LEFT)
    }

    /// Prints the violations, and returns their number.
    fn faults(&self) -> usize {
        println!(
            "invariants: {} changes, {} violations",
            self.changes,
            self.violations.len()
        );
        let shown = |violation: &Violation| format!("{}: {}", violation.invariant, violation.text);
        show("invariants", self.violations.iter().map(shown));
        self.violations.len()
    }
}

/// Compares the answers of the simulated API server with the real ones; returns the number of differences.
fn refinement_faults(writes: &[plans::Write]) -> usize {
    let refinement = refinement::check(writes);
    println!(
        "simulated API server: {} writes answered equally, {} differently, kinds unknown to it: {:?}",
        refinement.equal,
        refinement.differences.len(),
        refinement.unknown
    );
    show("simulated API server", &refinement.differences);
    refinement.differences.len()
}

#[tokio::main]
async fn main() -> ExitCode {
    let features = Path::new(env!("CARGO_MANIFEST_DIR")).join("features");
    let result = OlmWorld::cucumber()
        .max_concurrent_scenarios(MAX_CONCURRENT)
        .fail_on_skipped()
        .after(|feature, _, scenario, event, world| {
            Box::pin(async move {
                let failed = matches!(event, cucumber::event::ScenarioFinished::StepFailed(..));
                let title = format!("{}: {}", feature.name, scenario.name);
                if failed {
                    show("scenario", [&title]);
                }
                if let Some(world) = world {
                    world.finish(&title, failed).await;
                }
            })
        })
        .run(features)
        .await;
    let scenarios = result.scenarios_stats();
    let faults = status_faults().await + write_faults().await;
    let failed =
        scenarios.failed + scenarios.skipped + result.parsing_errors() + result.hook_errors() + faults;
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {} passed; {failed} failed; 0 ignored",
        scenarios.passed
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
