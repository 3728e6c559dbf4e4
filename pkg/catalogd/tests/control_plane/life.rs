//! The life of a catalog, from an image to served content and back.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use kube::api::{DeleteParams, ObjectMeta};
use olm_api::{ClusterCatalog, ClusterCatalogStatus};
use olm_harness::{ImageBuilder, eventually};
use serde_json::json;

use crate::world::{CONFIGS, Catalogd, PATIENCE, World, image};

#[tokio::test(flavor = "multi_thread")]
async fn from_an_image_to_served_content_and_back() -> Result<()> {
    let mut world = World::new().await?;
    let catalogd = world.catalogd()?;
    content_is_served(&world).await?;
    a_broken_image_keeps_the_served_content(&world).await?;
    damaged_content_is_repaired(&world).await?;
    terminal_errors_do_not_delay_another_catalog(&world).await?;
    let catalogd = a_restart_serves_without_the_registry(&mut world, catalogd).await?;
    let catalogd = a_poll_of_the_same_digest_rewrites_nothing(&world, catalogd).await?;
    an_unavailable_catalog_loses_its_content(&world).await?;
    a_deleted_catalog_leaves_nothing(&world).await?;
    catalogd.stop().await
}

/// Conditions have upstream's messages.
async fn content_is_served(world: &World) -> Result<()> {
    let first = world.push("test/catalog:v1", "one").await?;
    world.apply("sample", "test/catalog:v1", json!({})).await?;
    world
        .condition(
            "sample",
            "Serving=True/Available",
            "Serving desired content from resolved source",
        )
        .await?;
    let catalog = world
        .condition(
            "sample",
            "Progressing=True/Succeeded",
            "Successfully unpacked and stored",
        )
        .await?;
    let status = catalog.status.clone().unwrap_or_default();
    let resolved = format!("{}/test/catalog@{first}", world.registry.host());
    assert_eq!(
        status.resolved_source.map(|source| source.image.ref_),
        Some(resolved)
    );
    let base = format!("https://{}/catalogs/sample", world.port.address());
    assert_eq!(status.urls.map(|urls| urls.base), Some(base));
    assert!(status.last_unpacked.is_some());
    let labels = catalog.metadata.labels.clone().unwrap_or_default();
    assert_eq!(
        labels
            .get("olm.operatorframework.io/metadata.name")
            .map(String::as_str),
        Some("sample")
    );
    assert_eq!(
        catalog.metadata.finalizers.as_deref(),
        Some(["olm.operatorframework.io/delete-server-cache".to_owned()].as_slice())
    );
    world.serves("sample", "one").await
}

/// The message names the file, and a mended image recovers.
async fn a_broken_image_keeps_the_served_content(world: &World) -> Result<()> {
    image("a: [").push(&world.registry, "test/catalog:broken").await?;
    world.apply("sample", "test/catalog:broken", json!({})).await?;
    world
        .condition("sample", "Progressing=True/Retrying", "a/catalog.yaml")
        .await?;
    world.condition("sample", "Serving=True/Available", "").await?;
    world.serves("sample", "one").await?;
    world.push("test/catalog:broken", "two").await?;
    world
        .condition("sample", "Progressing=True/Succeeded", "")
        .await?;
    world.serves("sample", "two").await
}

async fn damaged_content_is_repaired(world: &World) -> Result<()> {
    world.damage("sample")?;
    world.event("sample", "ContentDamaged", "catalog.jsonl").await?;
    world
        .condition("sample", "Progressing=True/Succeeded", "")
        .await?;
    world.serves("sample", "two").await
}

async fn terminal_errors_do_not_delay_another_catalog(world: &World) -> Result<()> {
    let plain = ImageBuilder::new()
        .file("x", b"x".to_vec())
        .push(&world.registry, "test/plain:v1")
        .await?;
    world
        .apply("blocked", &format!("test/plain@{plain}"), json!({}))
        .await?;
    let text = format!("terminal error: catalog image is missing the required label \"{CONFIGS}\"");
    world
        .condition("blocked", "Progressing=False/Blocked", &text)
        .await?;
    world.apply("missing", "test/nothing:v1", json!({})).await?;
    let missing = world
        .condition("missing", "Progressing=True/Retrying", "source catalog content: ")
        .await?;
    let conditions = missing.status.unwrap_or_default().conditions.unwrap_or_default();
    assert!(conditions.iter().all(|c| c.type_ != "Serving"), "{conditions:?}");
    Ok(())
}

/// The restart writes nothing new. Ends with the registry at work again.
async fn a_restart_serves_without_the_registry(world: &mut World, catalogd: Catalogd) -> Result<Catalogd> {
    let before = world
        .condition("sample", "Progressing=True/Succeeded", "")
        .await?;
    catalogd.stop().await?;
    world.registry.stop();
    let catalogd = world.catalogd()?;
    world.serves("sample", "two").await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = world.catalogs.get("sample").await?;
    assert_eq!(before.metadata.resource_version, after.metadata.resource_version);
    world.registry.restart().await?;
    Ok(catalogd)
}

/// The age of the content makes a poll due at the start, which also removes content of catalogs that were deleted meanwhile.
async fn a_poll_of_the_same_digest_rewrites_nothing(
    world: &World,
    mut catalogd: Catalogd,
) -> Result<Catalogd> {
    let spec = json!({"source": {"type": "Image", "image": {
        "ref": format!("{}/test/catalog:broken", world.registry.host()), "pollIntervalMinutes": 1,
    }}});
    world.apply("sample", "test/catalog:broken", spec).await?;
    let mut seen = Vec::new();
    for _ in 0..2 {
        catalogd.stop().await?;
        world.make_old("sample")?;
        let orphans = [
            world.cache.path().join("catalogs/orphan/sha256-x"),
            world.cache.path().join("unpack/orphan/sha256:x"),
        ];
        for orphan in &orphans {
            std::fs::create_dir_all(orphan)?;
        }
        let asked = world.polls()?;
        catalogd = world.catalogd()?;
        eventually(PATIENCE, "a poll, and orphans gone", async || {
            ensure!(world.polls()? > asked, "not asked for");
            ensure!(
                !orphans.iter().any(|orphan| orphan.exists()),
                "an orphan is there"
            );
            Ok(())
        })
        .await?;
        let catalog = current(world).await?;
        // A check of the registry is in the status; nothing else of the object changes.
        let status = catalog
            .status
            .map(|status| ClusterCatalogStatus { poll: None, ..status });
        let metadata = ObjectMeta {
            resource_version: None,
            managed_fields: None,
            ..catalog.metadata
        };
        seen.push((metadata, catalog.spec, status, world.files("sample")?));
    }
    let text = world.registry.access_log()?;
    assert_eq!(seen.first(), seen.last(), "{text}");
    Ok(catalogd)
}

/// Returns the catalog once its status is of its spec: the status of a former spec says Succeeded, too.
async fn current(world: &World) -> Result<ClusterCatalog> {
    eventually(PATIENCE, "the status is of the spec", async || {
        let catalog = world
            .condition("sample", "Progressing=True/Succeeded", "")
            .await?;
        let conditions = catalog.status.clone().unwrap_or_default().conditions;
        let observed = conditions
            .unwrap_or_default()
            .iter()
            .map(|condition| condition.observed_generation)
            .min()
            .flatten();
        ensure!(observed == catalog.metadata.generation, "it is of {observed:?}");
        Ok(catalog)
    })
    .await
}

/// It also loses its finalizer and URLs. An available one regains all.
async fn an_unavailable_catalog_loses_its_content(world: &World) -> Result<()> {
    let mode = async |mode: &str| {
        let spec = json!({"availabilityMode": mode});
        world.apply("sample", "test/catalog:broken", spec).await
    };
    mode("Unavailable").await?;
    let text = "Catalog availability mode is set to Unavailable";
    world
        .condition("sample", "Serving=False/UserSpecifiedUnavailable", text)
        .await?;
    eventually(PATIENCE, "finalizer and content gone", async || {
        let catalog = world.catalogs.get("sample").await?;
        ensure!(
            catalog.metadata.finalizers.unwrap_or_default().is_empty(),
            "finalizer"
        );
        ensure!(catalog.status.unwrap_or_default().urls.is_none(), "urls");
        let answer = world.fetch("/catalogs/sample/api/v1/all").await?;
        ensure!(answer == (404, "404 Not Found\n".to_owned()), "{answer:?}");
        Ok(())
    })
    .await?;
    mode("Available").await?;
    world.serves("sample", "two").await
}

async fn a_deleted_catalog_leaves_nothing(world: &World) -> Result<()> {
    world.catalogs.delete("sample", &DeleteParams::default()).await?;
    eventually(PATIENCE, "sample is gone", async || {
        if world.catalogs.get_opt("sample").await?.is_some() {
            bail!("still there");
        }
        ensure!(
            !world.cache.path().join("catalogs/sample").exists(),
            "content still there"
        );
        Ok(())
    })
    .await?;
    assert_eq!(world.fetch("/catalogs/sample/api/v1/all").await?.0, 404);
    Ok(())
}
