//! A memory limit that a program reaches in the middle of its work.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::seen::{self, Which};
use crate::kinds::Kind;
use crate::{Scenario, Stage, World, kinds};

/// Address space that a program may still allocate, in bytes.
const ROOM: u64 = 256 * 1024;

/// Limits the memory of catalogd, which reaches the limit while it stores another catalog.
pub(super) async fn limit_catalogd(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    let name = scenario.catalog();
    limit(world, Which::Catalogd)?;
    // Another catalog with the same image gives catalogd work.
    let image = kinds::CATALOG.all(&world.client()).get(&name).await?.data["spec"]["source"].clone();
    let other = serde_json::json!({"apiVersion": kinds::CATALOG.api_version(), "kind": kinds::CATALOG.name(),
        "metadata": {"name": format!("{name}-other")}, "spec": {"source": image}});
    let params = kube::api::PatchParams::apply("faults-user");
    let catalogs = kinds::CATALOG.all(&world.client());
    let other_name = format!("{name}-other");
    catalogs
        .patch(&other_name, &params, &kube::api::Patch::Apply(&other))
        .await?;
    let seen = end(world, Which::Catalogd, kinds::CATALOG, &other_name).await;
    catalogs
        .delete(&other_name, &kube::api::DeleteParams::default())
        .await?;
    scenario.perform(&world.client(), Stage::Install).await?;
    seen
}

/// Limits the memory of operator-controller before an installation.
pub(super) async fn limit_controller(world: &mut World, scenario: &mut Scenario) -> Result<String> {
    limit(world, Which::Controller)?;
    scenario.perform(&world.client(), Stage::Install).await?;
    end(world, Which::Controller, kinds::EXTENSION, &scenario.extension()).await
}

/// Waits for the effect of the limit, and restarts the program without it.
async fn end(world: &mut World, which: Which, kind: Kind, name: &str) -> Result<String> {
    let seen = seen::trouble(world, which, kind, name).await;
    let program = which.of(world);
    program.kill()?;
    program.start().await?;
    seen
}

/// Limits the address space of a running program to its present size plus [`ROOM`].
fn limit(world: &mut World, which: Which) -> Result<()> {
    let process = which.of(world).process().context("the program does not run")?;
    let pid = process.pid().context("the program has no id")?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let size = status
        .lines()
        .find_map(|line| line.strip_prefix("VmSize:"))
        .context("no VmSize")?;
    let size: u64 = size
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .context("VmSize is no number")?;
    let most = size * 1024 + ROOM;
    let done = Command::new("prlimit")
        .args(["--pid", &pid.to_string(), &format!("--as={most}")])
        .output()
        .context("cannot run prlimit")?;
    ensure!(
        done.status.success(),
        "prlimit fails: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(())
}
