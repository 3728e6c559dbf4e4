//! Signature policies of catalogs that are already stored.

use std::path::Path;

use anyhow::{Result, ensure};
use olm_harness::eventually;
use serde_json::json;

use crate::world::{Catalogd, PATIENCE, World};

/// A policy that requires signatures by a key that signed nothing.
fn signed(folder: &Path) -> Result<String> {
    let key = folder.join("cosign.pub");
    let der = format!("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE{}==", "A".repeat(86));
    std::fs::write(
        &key,
        format!("-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----\n"),
    )?;
    Ok(json!({"default": [{"type": "sigstoreSigned", "keyPath": key}]}).to_string())
}

/// Starts catalogd with this policy.
fn judging(world: &World, policy: &Path) -> Result<Catalogd> {
    let flag = format!("--image-policy={}", policy.display());
    Catalogd::start(
        &world.plane,
        &world.registry,
        Some(flag),
        world.cache.path(),
        &world.port,
    )
}

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
    let catalogd = judging(&world, &policy)?;
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

/// The content of a former spec is served while the new image cannot be pulled. A new policy verifies its signatures, and the lack of
/// them ends the serving.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_policy_counts_for_content_of_a_former_spec() -> Result<()> {
    let world = World::new().await?;
    world.push("test/catalog:v1", "one").await?;
    world.apply("sample", "test/catalog:v1", json!({})).await?;
    let folder = tempfile::tempdir()?;
    let policy = folder.path().join("policy.json");
    let accept = json!({"default": [{"type": "insecureAcceptAnything"}]});
    std::fs::write(&policy, accept.to_string())?;
    let catalogd = judging(&world, &policy)?;
    world.serves("sample", "one").await?;
    world.apply("sample", "test/catalog:absent", json!({})).await?;
    world
        .condition("sample", "Progressing=True/Retrying", "catalog:absent")
        .await?;
    world.serves("sample", "one").await?;

    std::fs::write(&policy, signed(folder.path())?)?;
    world.condition("sample", "Serving=False/Unavailable", "").await?;
    world
        .condition("sample", "Progressing=True/Retrying", "catalog:absent")
        .await?;
    world.event("sample", "PullFailed", "no longer served").await?;
    eventually(PATIENCE, "the content is not served", async || {
        let answer = world.fetch("/catalogs/sample/api/v1/all").await?;
        ensure!(answer.0 == 404, "{answer:?}");
        Ok(())
    })
    .await?;
    catalogd.stop().await
}
