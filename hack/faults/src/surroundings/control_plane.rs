//! Trouble of the control plane.

use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep;

use super::reach;
use super::seen::{self, Which};
use crate::{Scenario, Stage, World, kinds};

/// Time from a change to the trouble: the controllers are at work.
const IN_THE_MIDDLE: Duration = Duration::from_millis(500);
/// Time without etcd.
const OUTAGE: Duration = Duration::from_secs(20);

pub(super) async fn restart_api_server(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    scenario.perform(&world.client(), Stage::Install).await?;
    sleep(IN_THE_MIDDLE).await;
    world.plane.restart_apiserver().await?;
    after(world, scenario).await
}

pub(super) async fn stop_etcd(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    scenario.perform(&world.client(), Stage::Install).await?;
    reach(world, scenario).await?;
    scenario.perform(&world.client(), Stage::Upgrade).await?;
    sleep(IN_THE_MIDDLE).await;
    world.plane.etcd().signal("STOP")?;
    sleep(OUTAGE).await;
    world.plane.etcd().signal("CONT")?;
    after(world, scenario).await
}

/// A status cannot be written meanwhile. Returns what it says at once afterwards.
async fn after(world: &mut World, scenario: &Scenario) -> Result<String> {
    let found = seen::condition(&world.client(), kinds::EXTENSION, &scenario.extension()).await;
    Ok(found
        .ok()
        .flatten()
        .unwrap_or_else(|| "nothing: no status can be written meanwhile".to_owned()))
}

pub(super) async fn no_controller_manager(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    world.plane.controller_manager().signal("STOP")?;
    let result = without_controller_manager(world, scenario).await;
    world.plane.controller_manager().signal("CONT")?;
    result
}

async fn without_controller_manager(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    scenario.perform(&world.client(), Stage::Install).await?;
    seen::trouble(world, Which::Controller, kinds::EXTENSION, &scenario.extension()).await
}
