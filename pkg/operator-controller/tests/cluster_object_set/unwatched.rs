//! Kinds whose watch fails.

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use olm_harness::eventually;
use serde_json::json;

use super::world::{LIMIT, World, map};

/// A watch that cannot list is unknown, not unchanged: what is changed or deleted comes back all the same, and status and events
/// say that it is not watched, and why, until it is watched again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_that_fails_hides_no_change() -> Result<()> {
    let world = World::start().await?;
    world.lies.lock().lists = Some(("/configmaps", 500));
    let set = world
        .create("blind", 1, vec![map("changed", "1"), map("deleted", "1")])
        .await?;
    world.until(&set, "Progressing", "True", "Succeeded", "").await?;
    let said = "ConfigMap.v1: the API server does not list them: no /configmaps today";
    world
        .until(&set, "WatchFailing", "True", "Unavailable", said)
        .await?;
    world.until(&set, "Ready", "True", "Succeeded", "").await?;

    change(&world).await?;
    repaired(&world).await?;
    let events: Api<Event> = Api::namespaced(world.client.clone(), "default");
    eventually(LIMIT, "an event says so", async || {
        let list = events.list(&ListParams::default()).await?;
        let told = list.items.iter().any(|event| {
            let note = event.note.as_deref().unwrap_or_default();
            event.reason.as_deref() == Some("WatchFailing") && note.contains(said)
        });
        ensure!(told, "{:#?}", list.items);
        Ok(())
    })
    .await?;

    // Retries write nothing; another cause does.
    let version = async || anyhow::Ok(world.sets().get(&set).await?.metadata.resource_version);
    let before = version().await?;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    ensure!(version().await? == before, "the status is written at every retry");
    world.lies.lock().lists = Some(("/configmaps", 403));
    let said = "the controller has no right to list and watch them";
    world
        .until(&set, "WatchFailing", "True", "Forbidden", said)
        .await?;

    world.lies.lock().lists = None;
    eventually(LIMIT, "the condition goes", async || {
        let status = world.sets().get(&set).await?.status.unwrap_or_default();
        match status
            .conditions
            .iter()
            .flatten()
            .find(|c| c.type_ == "WatchFailing")
        {
            None => Ok(()),
            Some(told) => bail!("{told:?}"),
        }
    })
    .await?;
    change(&world).await?;
    repaired(&world).await?;
    world.sets().delete(&set, &DeleteParams::default()).await?;
    world.gone(&set).await
}

async fn change(world: &World) -> Result<()> {
    let (params, patch) = (PatchParams::default(), json!({"data": {"key": "drifted"}}));
    world
        .maps()
        .patch("changed", &params, &Patch::Merge(&patch))
        .await?;
    world.maps().delete("deleted", &DeleteParams::default()).await?;
    Ok(())
}

async fn repaired(world: &World) -> Result<()> {
    eventually(LIMIT, "what was changed and deleted is repaired", async || {
        let data = world.maps().get("changed").await?.data.unwrap_or_default();
        ensure!(data.get("key").map(String::as_str) == Some("1"), "{data:?}");
        ensure!(world.maps().get_opt("deleted").await?.is_some(), "not back");
        Ok(())
    })
    .await
}
