//! A registry that accepts connections and never answers.

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use olm_harness::eventually;
use serde_json::json;

use crate::world::{Catalogd, PATIENCE, World};

/// A registry that accepts connections and never answers holds up neither a new spec nor a deletion.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_ends_a_pull_from_a_silent_registry() -> Result<()> {
    let world = World::new().await?;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let host = silent.local_addr()?.to_string();
    let catalogd = Catalogd::start(
        &world.plane,
        &world.registry,
        Some(format!("--plain-http-registry={host}")),
        world.cache.path(),
        &world.port,
    )?;
    world.push("test/catalog:v1", "one").await?;
    let image = json!({"type": "Image", "image": {"ref": format!("{host}/test/catalog:v1")}});

    world
        .apply("amended", "unused:v1", json!({"source": image}))
        .await?;
    let (_first, _) = tokio::time::timeout(PATIENCE, silent.accept()).await??;
    world.apply("amended", "test/catalog:v1", json!({})).await?;
    world.condition("amended", "Serving=True/Available", "").await?;

    world
        .apply("deleted", "unused:v1", json!({"source": image}))
        .await?;
    let (_second, _) = tokio::time::timeout(PATIENCE, silent.accept()).await??;
    world.catalogs.delete("deleted", &DeleteParams::default()).await?;
    eventually(PATIENCE, "the deleted catalog is gone", async || {
        ensure!(world.catalogs.get_opt("deleted").await?.is_none(), "still there");
        Ok(())
    })
    .await?;
    catalogd.stop().await
}
