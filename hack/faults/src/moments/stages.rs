//! Kills of operator-controller in the stages of an extension.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::{Instant, sleep};

use super::figures::{Figures, Outcome};
use super::{Killed, Options};
use crate::judge::Judge;
use crate::scenario::Promises;
use crate::seeded::Seeded;
use crate::{Scenario, World, convergence};

/// Number of extensions whose undisturbed stages are measured.
const MEASURED: u32 = 2;

/// Measures the stages, and then takes one extension after another through all of them, with a kill in each.
pub(super) async fn run(
    world: &mut World,
    judge: &mut Judge,
    options: &Options,
    seed: u64,
    promises: Promises,
    figures: &mut Figures,
) -> Result<()> {
    let (client, begin) = (world.client(), Instant::now());
    for number in 0..MEASURED {
        let mut scenario = Scenario::publish(world, &format!("m{seed:x}-{number}"), promises).await?;
        for killed in Killed::OF_EXTENSIONS {
            let Some(stage) = killed.stage() else { continue };
            scenario.perform(&client, stage).await?;
            let reached = reach(world, &scenario, options)
                .await
                .with_context(|| format!("{killed} without a kill"))?;
            figures.note_undisturbed(killed, reached);
        }
        scenario.retire(&client).await?;
    }
    for number in 0..options.moments {
        if options.is_over(begin) {
            break;
        }
        let mut scenario = Scenario::publish(world, &format!("k{seed:x}-{number}"), promises).await?;
        for killed in Killed::OF_EXTENSIONS {
            let Some(stage) = killed.stage() else { continue };
            // Each moment has a seed of its own, so that it does not depend on the number of moments.
            let mut seeded = Seeded::new(seed ^ (u64::from(number) << 8) ^ ((killed as u64) << 40));
            let most = u32::try_from(figures.undisturbed(killed).as_millis()).unwrap_or(u32::MAX);
            let moment = seeded.millis(0, most);
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
            // A process that still starts would count as rest.
            world.controller.wait_until_ready(options.limit()).await?;
            let ready = killed_at.elapsed();
            let reached = reach(world, &scenario, options).await;
            let lost = reached.is_err();
            let converged = reached.map(|after| ready + after);
            figures.add(
                killed,
                number,
                seed,
                Outcome {
                    moment,
                    before_end,
                    converged: converged.map_err(|error| format!("{error:#}")),
                },
            );
            if lost {
                break;
            }
        }
        figures.add_violations(judge.violations(&format!("{seed}, extension {number}")).await);
        scenario.retire(&client).await?;
    }
    Ok(())
}

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
