//! The removal of a revision that is the last owner of an object which a newer one had taken over.

use anyhow::{Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use olm_api::keys;
use serde_json::json;

use super::world::{World, map};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_goes_with_the_last_owner_if_the_extension_leaves() -> Result<()> {
    let world = World::start().await?;
    lose_controller(&world).await?;
    ensure!(
        world.maps().get_opt("shared").await?.is_none(),
        "nobody would ever remove it"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_stays_for_the_newest_revision_of_an_extension_that_stays() -> Result<()> {
    let world = World::start().await?;
    world.create_extension("sample", &[]).await?;
    lose_controller(&world).await?;
    let left = world.maps().get("shared").await?;
    ensure!(
        left.metadata.owner_references.unwrap_or_default().is_empty(),
        "the garbage collector would delete it"
    );
    Ok(())
}

/// Rolls out a revision and deletes it in the state that a newer revision leaves behind which has taken its object over and is gone:
/// the garbage collector has removed the reference to the controller.
async fn lose_controller(world: &World) -> Result<()> {
    let name = world.create("sample", 1, vec![map("shared", "1")]).await?;
    world.until(&name, "Progressing", "True", "Succeeded", "").await?;
    let applied = world.maps().get("shared").await?;
    let mut owners = applied.metadata.owner_references.unwrap_or_default();
    for owner in &mut owners {
        owner.controller = Some(false);
    }
    let metadata = json!({"ownerReferences": owners, "annotations": {keys::REVISION_ANNOTATION: "2"}});
    let taken_over = Patch::Merge(json!({ "metadata": metadata }));
    world
        .maps()
        .patch("shared", &PatchParams::default(), &taken_over)
        .await?;
    world.sets().delete(&name, &DeleteParams::default()).await?;
    world.gone(&name).await
}
