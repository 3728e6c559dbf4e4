//! Trouble of the control plane: the API server restarts, etcd stops, kube-controller-manager stops.

use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep;

use super::reach;
use super::seen::{self, Which};
use crate::{Scenario, Stage, World, kinds};

/// Time from a change by the user to the trouble, so that the controllers are in the middle of their work.
const IN_THE_MIDDLE: Duration = Duration::from_millis(500);
/// Time for which etcd is stopped.
const OUTAGE: Duration = Duration::from_secs(20);

/// Restarts the API server during an installation.
pub(super) async fn restart_api_server(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    scenario.perform(&world.client(), Stage::Install).await?;
    sleep(IN_THE_MIDDLE).await;
    world.plane.restart_apiserver().await?;
    after(world, scenario).await
}

/// Stops etcd for [`OUTAGE`] during an upgrade.
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

/// Returns the condition that users see right after the trouble. No status can be written during the trouble.
async fn after(world: &mut World, scenario: &Scenario) -> Result<String> {
    let found = seen::condition(&world.client(), kinds::EXTENSION, &scenario.extension()).await;
    Ok(found
        .ok()
        .flatten()
        .unwrap_or_else(|| "nothing: no status can be written meanwhile".to_owned()))
}

/// Stops kube-controller-manager during an installation, and lets it go on.
pub(super) async fn no_controller_manager(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    world.plane.controller_manager().signal("STOP")?;
    let result = without_controller_manager(world, scenario).await;
    world.plane.controller_manager().signal("CONT")?;
    result
}

/// Starts an installation and waits for a sign of trouble.
async fn without_controller_manager(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    scenario.perform(&world.client(), Stage::Install).await?;
    seen::trouble(world, Which::Controller, kinds::EXTENSION, &scenario.extension()).await
}
