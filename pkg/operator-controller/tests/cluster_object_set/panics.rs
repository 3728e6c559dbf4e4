//! Panics in a reconcile.

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use olm_harness::eventually;

use super::world::{LIMIT, World, map};

/// A panic ends one reconcile of one revision: the status shows it, a metric counts it, the others go on, and the revision is tried
/// again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_stops_nothing_else() -> Result<()> {
    let world = World::start().await?;
    world.lies.lock().trap = Some("/configmaps/trap");
    let trapped = world.create("trapped", 1, vec![map("trap", "1")]).await?;
    let said = "the controller failed unexpectedly and tries again; this is a defect, please report it: the trap is sprung";
    world
        .until(&trapped, "Progressing", "True", "Retrying", said)
        .await?;

    // More than there are workers.
    for number in 0..6 {
        let owner = format!("free{number}");
        let free = world.create(&owner, 1, vec![map(&owner, "1")]).await?;
        world.until(&free, "Progressing", "True", "Succeeded", "").await?;
    }
    eventually(LIMIT, "the panics are counted, and more than one", async || {
        let text = world.registry.encode()?;
        let name = "controller_runtime_reconcile_panics_total{controller=\"cluster-extension-revision\"} ";
        let count = text
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or("0");
        ensure!(count.parse::<u64>()? > 1, "{count}");
        Ok(())
    })
    .await?;
    world.lies.lock().trap = None;
    world
        .until(&trapped, "Progressing", "True", "Succeeded", "")
        .await?;
    world.sets().delete(&trapped, &DeleteParams::default()).await?;
    world.gone(&trapped).await
}
