//! Checks of a run as a whole, after its scenarios: statuses, plans, invariants, and the simulated API server.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use olm_e2e::environment::Environment;
use olm_e2e::{changes, plans, refinement};
use olm_proof::{Invariants, Settings, Violation};
use tokio::time::Instant;

/// Longest wait for the garbage collector at the end: it looks for new kinds every half a minute, and waits as long again if a CRD goes
/// meanwhile.
const GARBAGE: Duration = Duration::from_mins(3);
/// The invariant that an object outlives its extension.
const NOTHING_LEFT: &str = "nothing-left";

/// Result of a check.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// Names of what the check counted, with the counts.
    pub(crate) figures: Vec<(&'static str, usize)>,
    pub(crate) violations: Vec<Violation>,
    /// Gaps of the check, a sentence each.
    pub(crate) gaps: Vec<String>,
}

impl Check {
    /// Returns the result of a check; `faults` are sentences about what is wrong.
    pub(crate) fn new(
        name: &'static str,
        figures: Vec<(&'static str, usize)>,
        faults: impl IntoIterator<Item = impl Display>,
    ) -> Self {
        let violation = |fault: String| Violation {
            invariant: name.to_owned(),
            seed: String::new(),
            text: fault,
        };
        Self {
            name,
            figures,
            violations: faults
                .into_iter()
                .map(|fault| violation(fault.to_string()))
                .collect(),
            gaps: Vec::new(),
        }
    }
}

/// Checks the statuses and the writes of the run.
pub(crate) async fn all() -> Vec<Check> {
    let environment = match Environment::shared().await {
        Ok(environment) => environment,
        Err(error) => return vec![Check::new("environment", vec![], [format!("{error:#}")])],
    };
    let mut checks = vec![statuses(environment)];
    match writes_at_rest(&environment.control_plane.audit_log()).await {
        Ok((writes, invariants)) => checks.extend([plans(&writes), invariants, simulated(&writes)]),
        Err(error) => checks.push(Check::new("audit log", vec![], [format!("{error:#}")])),
    }
    checks
}

/// Checks all statuses of the run against the rules of kstatus. A run of scenarios without extensions has no statuses.
fn statuses(environment: &Environment) -> Check {
    let (objects, versions) = environment.history.size();
    let figures = vec![("ClusterExtensions", objects), ("versions of them", versions)];
    Check::new("statuses", figures, environment.history.faults())
}

/// Reads the writes of the run when the garbage collector is done, and holds every change against the invariants.
async fn writes_at_rest(audit_log: &Path) -> anyhow::Result<(Vec<plans::Write>, Check)> {
    let deadline = Instant::now() + GARBAGE;
    loop {
        let writes = plans::read(audit_log)?;
        let check = invariants(&writes);
        let waits = check
            .violations
            .iter()
            .any(|violation| violation.invariant == NOTHING_LEFT);
        if !waits || Instant::now() >= deadline {
            return Ok((writes, check));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Holds every change of the run against the invariants.
fn invariants(writes: &[plans::Write]) -> Check {
    let changes = changes::of(writes);
    let mut invariants = Invariants::new(Settings::default());
    let mut violations: Vec<_> = changes
        .iter()
        .flat_map(|change| invariants.observe(change))
        .collect();
    violations.extend(invariants.finish());
    Check {
        violations,
        ..Check::new("invariants", vec![("changes", changes.len())], [""; 0])
    }
}

/// Compares the writes of operator-controller with the plans of its rollouts.
fn plans(writes: &[plans::Write]) -> Check {
    let verdict = plans::check(writes);
    let figures = vec![
        ("rollouts", verdict.rollouts),
        ("approved ones", verdict.approved),
        ("writes", verdict.writes),
        ("repairs", verdict.repairs),
    ];
    Check::new("plans", figures, verdict.faults())
}

/// Compares the answers of the simulated API server with the real ones.
fn simulated(writes: &[plans::Write]) -> Check {
    let refinement = refinement::check(writes);
    let gap = |(kind, count): (&String, &usize)| {
        format!("The simulated API server does not know {kind}; {count} writes were not compared.")
    };
    Check {
        gaps: refinement.unknown.iter().map(gap).collect(),
        ..Check::new(
            "simulated API server",
            vec![("equal answers", refinement.equal)],
            refinement.differences,
        )
    }
}
