//! The removal of a revision whose objects others own too: an older active one, or none any more.

use anyhow::{Context as _, Result, bail, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use olm_api::keys;
use serde_json::json;

use olm_harness::eventually;

use super::world::{LIMIT, NAMESPACE, World, map};

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
    // An active revision would take the object back.
    let paused = Patch::Merge(json!({"spec": {"paused": true}}));
    world
        .sets()
        .patch(&name, &PatchParams::default(), &paused)
        .await?;
    world.until(&name, "Progressing", "False", "Paused", "").await?;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_revision_gives_back_what_it_had_taken_over() -> Result<()> {
    let world = World::start().await?;
    world.create_extension("sample", &[]).await?;
    let first = world.create("sample", 1, vec![map("shared", "1")]).await?;
    world
        .until(&first, "Progressing", "True", "Succeeded", "")
        .await?;
    let uid = world.maps().get("shared").await?.metadata.uid;

    // A claim that nobody binds is applied in a later phase, so that the revision takes the object over and does not succeed.
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "never", "namespace": NAMESPACE},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Mi"}}}});
    let objects = vec![map("shared", "2"), map("brought", "2"), claim];
    let second = world.create("sample", 2, objects).await?;
    eventually(LIMIT, "the second revision has the objects", async || {
        let shared = world.maps().get("shared").await?;
        ensure!(shared.data.context("no data")?["key"] == "2");
        world.maps().get("brought").await?;
        Ok(())
    })
    .await?;
    let progressing = world.sets().get(&second).await?.status;
    world.sets().delete(&second, &DeleteParams::default()).await?;
    world.gone(&second).await?;
    eventually(LIMIT, "the first revision has its object", async || {
        let shared = world.maps().get("shared").await?;
        ensure!(shared.metadata.uid == uid, "it was deleted; {progressing:#?}");
        let owners = shared.metadata.owner_references.unwrap_or_default();
        match owners.as_slice() {
            [only] if only.name == first && only.controller == Some(true) => {}
            others => bail!("{others:#?}"),
        }
        ensure!(shared.data.context("no data")?["key"] == "1");
        ensure!(world.maps().get_opt("brought").await?.is_none(), "it stays");
        Ok(())
    })
    .await?;

    // The first revision still removes its object.
    world.sets().delete(&first, &DeleteParams::default()).await?;
    world.gone(&first).await?;
    ensure!(world.maps().get_opt("shared").await?.is_none());
    Ok(())
}
