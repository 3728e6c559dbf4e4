//! One stage of a schedule: the change by the user under faults, their end, and convergence.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::Step;
use crate::{Scenario, World, convergence};

/// Maximum time for which the faults of a stage wait for their requests.
const WINDOW: Duration = Duration::from_secs(5);
/// Pause between two checks if a fault demands to kill the controller.
const PAUSE: Duration = Duration::from_millis(20);
/// Pause between two checks of the cluster while there are faults.
const LOOK: Duration = Duration::from_millis(500);

/// Limits of a stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum time from the end of the faults to convergence.
    pub(super) converge: Duration,
    /// Time without a write after which the cluster counts as quiet.
    pub(super) quiet: Duration,
}

/// Result of a stage.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Time from the end of the faults to convergence, or to the failure.
    pub(super) converged: Duration,
    /// Number of kills.
    pub(super) kills: u64,
    /// Reason why the cluster did not converge.
    pub(super) failure: Option<String>,
}

/// Makes the change of the stage under its faults. Ends the faults when all of them happened, after [`WINDOW`], or once the
/// expectation is met. Then waits for convergence.
pub(super) async fn perform(
    world: &mut World,
    scenario: &mut Scenario,
    step: &Step,
    limits: Limits,
) -> Result<Outcome> {
    let client = world.client();
    world.proxy.injector().set_rules(&step.rules);
    scenario.perform(&client, step.stage).await?;
    let expectation = scenario.expectation();
    let started = Instant::now();
    let mut looked = started;
    let mut kills = 0;
    let mut failure = None;
    while started.elapsed() < WINDOW && world.proxy.injector().pending() > 0 && failure.is_none() {
        tokio::time::sleep(PAUSE).await;
        kills += kill_if_demanded(world)?;
        failure = world.controller.check().err();
        if looked.elapsed() > LOOK {
            looked = Instant::now();
            let changes = world.ledger.changes();
            let reached = expectation.check(&client).await.is_ok();
            if reached && world.ledger.changes() == changes {
                break;
            }
        }
    }
    world.proxy.injector().set_rules(&[]);
    world.registry_tunnel.set_faults(&[]);
    world.catalogd_tunnel.set_faults(&[]);
    world.proxy.injector().note("FAULTS END");
    let calm = Instant::now();
    if failure.is_none() {
        let ledger = world.ledger.clone();
        let reached = convergence::reach(&client, &ledger, &expectation, limits.converge, limits.quiet);
        let mut reached = std::pin::pin!(reached);
        failure = loop {
            tokio::select! {
                done = &mut reached => break done.err(),
                // A write that got its fault before the end of the faults may still demand a kill.
                () = tokio::time::sleep(PAUSE) => kills += kill_if_demanded(world)?,
            }
        };
    }
    let converged = calm.elapsed().saturating_sub(limits.quiet);
    let failure = failure.or_else(|| world.controller.check().err());
    Ok(Outcome {
        converged,
        kills,
        failure: failure.map(|error| format!("{error:#}")),
    })
}

/// Kills and restarts the controller if a fault demands it. Returns the number of kills.
fn kill_if_demanded(world: &mut World) -> Result<u64> {
    if !world.proxy.injector().take_kill() {
        return Ok(0);
    }
    world.controller.kill()?;
    world.proxy.injector().note("KILLED, starts again");
    world.proxy.open();
    world.controller.spawn()?;
    Ok(1)
}
