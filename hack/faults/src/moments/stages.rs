//! Kills of operator-controller in the stages of an extension.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::{Instant, sleep};

use super::figures::{Case, Outcome};
use super::{Killed, Options};
use crate::{Judge, Run, Scenario, World, convergence};

/// Number of extensions whose stages are measured without a kill.
const MEASURED: u32 = 2;

/// Shortest duration of each stage without a kill. The moments of the kills are spread over it.
pub(super) type Undisturbed = BTreeMap<Killed, Duration>;

/// Measures the stages of an extension without a kill.
pub(super) async fn measure(world: &World, run: &Run, options: &Options) -> Result<Undisturbed> {
    let client = world.client();
    let mut undisturbed = Undisturbed::new();
    for number in 0..MEASURED {
        let id = format!("m{:x}-{number}", run.seed);
        let mut scenario = Scenario::publish(world, &id, run.promises).await?;
        for killed in Killed::OF_EXTENSIONS {
            let Some(stage) = killed.stage() else { continue };
            scenario.perform(&client, stage).await?;
            let reached = reach(world, &scenario, options)
                .await
                .with_context(|| format!("{killed} without a kill"))?;
            let known = undisturbed.entry(killed).or_insert(reached);
            *known = reached.min(*known);
        }
        scenario.retire(&client).await?;
    }
    Ok(undisturbed)
}

/// Takes an extension through all stages, with a kill in each selected one. Returns true if the cluster converged after the last
/// kill.
pub(super) async fn kill_in(
    world: &mut World,
    judge: &mut Judge,
    (run, options): (&Run, &Options),
    undisturbed: &Undisturbed,
    number: u64,
    case: &mut Case,
) -> Result<bool> {
    let (client, seed) = (world.client(), run.seed);
    let mut scenario = Scenario::publish(world, &format!("k{seed:x}-{number}"), run.promises).await?;
    let mut kept = true;
    for killed in Killed::OF_EXTENSIONS {
        let Some(stage) = killed.stage() else { continue };
        let most = undisturbed.get(&killed).copied().unwrap_or_default();
        let moment = killed.moment(seed, number, most);
        scenario.perform(&client, stage).await?;
        if !options.kills_in(killed) {
            reach(world, &scenario, options).await?;
            continue;
        }
        sleep(moment).await;
        world.controller.kill()?;
        let before_end = scenario.expectation().check(&client).await.is_err();
        let killed_at = Instant::now();
        world.controller.spawn()?;
        // A process that is still starting writes nothing, which would count as quiet.
        world.controller.wait_until_ready(options.limit()).await?;
        let ready = killed_at.elapsed();
        let reached = reach(world, &scenario, options).await;
        kept = reached.is_ok();
        let converged = reached
            .map(|after| ready + after)
            .map_err(|error| format!("{error:#}"));
        let outcome = Outcome {
            moment,
            before_end,
            converged,
        };
        case.add(killed, number, seed, &outcome);
        if !kept {
            break;
        }
    }
    case.add_violations(judge.violations(&format!("{seed}, extension {number}")).await);
    scenario.retire(&client).await?;
    Ok(kept)
}

/// Waits for convergence. Returns the time until the expectation was met.
async fn reach(world: &World, scenario: &Scenario, options: &Options) -> Result<Duration> {
    let expectation = scenario.expectation();
    let reached = convergence::reach(
        &world.client(),
        &world.ledger,
        &expectation,
        options.limit(),
        options.quiet(),
    )
    .await?;
    Ok(reached.after)
}
