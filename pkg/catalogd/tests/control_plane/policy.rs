//! Signature policies of catalogs that are already stored.

use anyhow::{Result, ensure};
use olm_harness::eventually;
use serde_json::json;

use crate::world::{Catalogd, PATIENCE, World};

/// A new policy that rejects the image ends the serving of the stored content, and the status says why. A policy that accepts the
/// image brings the content back.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_policy_counts_for_stored_content() -> Result<()> {
    let world = World::new().await?;
    world.push("test/catalog:v1", "one").await?;
    world.apply("sample", "test/catalog:v1", json!({})).await?;
    let catalogd = world.catalogd()?;
    world
        .condition(
            "sample",
            "Progressing=True/Succeeded",
            "signatures are not verified",
        )
        .await?;
    world.serves("sample", "one").await?;
    catalogd.stop().await?;

    let folder = tempfile::tempdir()?;
    let policy = folder.path().join("policy.json");
    let write =
        |requirement: &str| std::fs::write(&policy, json!({"default": [{"type": requirement}]}).to_string());
    write("reject")?;
    let flag = format!("--image-policy={}", policy.display());
    let catalogd = Catalogd::start(
        &world.plane,
        &world.registry,
        Some(flag),
        world.cache.path(),
        &world.port,
    )?;
    world
        .condition("sample", "Progressing=True/Retrying", "is rejected by policy")
        .await?;
    let catalog = world.condition("sample", "Serving=False/Unavailable", "").await?;
    let status = catalog.status.unwrap_or_default();
    ensure!(
        status.resolved_source.is_none() && status.urls.is_none(),
        "{status:?}"
    );
    eventually(PATIENCE, "the content is not served", async || {
        let answer = world.fetch("/catalogs/sample/api/v1/all").await?;
        ensure!(answer.0 == 404, "{answer:?}");
        Ok(())
    })
    .await?;

    write("insecureAcceptAnything")?;
    world
        .condition("sample", "Progressing=True/Succeeded", "")
        .await?;
    world.serves("sample", "one").await?;
    catalogd.stop().await
}
