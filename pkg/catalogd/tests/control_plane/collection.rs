//! Content of catalogs that are gone.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use olm_catalogd::controller::CatalogWatch;
use olm_catalogd::gc::Collector;
use olm_catalogd::storage::{Origin, Store, ValidCatalogName};
use olm_harness::eventually;
use olm_image::{ImageConfig, Puller};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::{PATIENCE, World};

#[tokio::test(flavor = "multi_thread")]
async fn content_of_catalogs_that_are_gone_is_collected() -> Result<()> {
    let world = World::new().await?;
    what_is_in_flight_is_not_collected(&world).await?;
    what_vanished_without_its_finalizer_is_collected(&world).await
}

/// A catalog that vanishes without its finalizer is collected at once, not in the next round hours later.
async fn what_vanished_without_its_finalizer_is_collected(world: &World) -> Result<()> {
    let stop = CancellationToken::new();
    world.apply("stripped", "test/catalog:v1", json!({})).await?;
    let watch = CatalogWatch::default();
    let mut listed = watch.subscribe();
    let cache = tempfile::tempdir()?;
    let name = ValidCatalogName::new("stripped")?;
    let (collector, store) = collector(world, cache.path(), &[&name])?;
    let (watched, client, ending) = (watch.clone(), world.client.clone(), stop.clone());
    let watching = tokio::spawn(async move { watched.run(client, ending).await });
    let (deleted, ending) = (watch.deleted(), stop.clone());
    let running = tokio::spawn(async move { collector.run(Duration::from_hours(12), deleted, ending).await });
    tokio::time::timeout(PATIENCE, listed.wait_for(Option::is_some)).await??;
    ensure!(store.get(&name).is_some(), "its catalog is there");
    world
        .catalogs
        .delete("stripped", &DeleteParams::default())
        .await?;
    eventually(PATIENCE, "its content is collected", async || {
        ensure!(store.get(&name).is_none(), "it is served");
        Ok(())
    })
    .await?;
    stop.cancel();
    watching.await?;
    running.await?;
    Ok(())
}

/// Returns a collector, and a store with content of these catalogs.
fn collector(world: &World, cache: &Path, names: &[&ValidCatalogName]) -> Result<(Collector, Arc<Store>)> {
    let source = tempfile::tempdir()?;
    std::fs::write(source.path().join("catalog.json"), "{\"schema\":\"x\"}")?;
    let store = Arc::new(Store::open(cache.join("catalogs"))?);
    for name in names {
        let origin = Origin {
            requested: "r".to_owned(),
            resolved: "r@sha256:a".to_owned(),
            unpacked_at: 0,
            verified: None,
        };
        store.store(name, source.path(), origin, 0, &|| false)?;
    }
    let collector = Collector {
        client: world.client.clone(),
        store: store.clone(),
        puller: Arc::new(Puller::new(ImageConfig::new(cache))),
        unpacked: cache.join("unpack"),
    };
    Ok((collector, store))
}

/// Of two deleted catalogs, the locked one is collected only after its lock is released.
async fn what_is_in_flight_is_not_collected(world: &World) -> Result<()> {
    let cache = tempfile::tempdir()?;
    let (busy, idle) = (ValidCatalogName::new("a-busy")?, ValidCatalogName::new("b-idle")?);
    let (collector, store) = collector(world, cache.path(), &[&busy, &idle])?;
    let stop = CancellationToken::new();
    let at_work = store.lock(&busy).await;
    let ending = stop.clone();
    let running = tokio::spawn(async move {
        let never = CatalogWatch::default().deleted();
        collector.run(Duration::from_millis(100), never, ending).await;
    });
    let gone = async |name: &ValidCatalogName| {
        eventually(PATIENCE, &format!("{name} is collected"), async || {
            ensure!(store.get(name).is_none(), "it is served");
            Ok(())
        })
        .await
    };
    gone(&idle).await?;
    ensure!(store.get(&busy).is_some(), "what was at work was collected");
    drop(at_work);
    gone(&busy).await?;
    stop.cancel();
    running.await?;
    Ok(())
}
