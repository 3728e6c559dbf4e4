//! Removals that custom resources block in the middle of an upgrade: no revision removes anything.

use anyhow::{Result, bail, ensure};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use olm_api::keys;
use olm_harness::eventually;
use serde_json::{Value, json};

use super::world::{LIMIT, NAMESPACE, World, map};
use super::{crd, deployment, thing};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_block_the_removal_of_both_revisions_of_an_upgrade() -> Result<()> {
    let world = World::start().await?;
    let mut dropped = crd();
    dropped["metadata"]["name"] = json!("relics.example.com");
    dropped["spec"]["names"] =
        json!({"plural": "relics", "singular": "relic", "kind": "Relic", "listKind": "RelicList"});
    // The first revision has the other CRD and the operator.
    let (first, second) = taken_over(&world, vec![crd(), dropped, map("operator", "1")]).await?;
    let things = custom(&world, "Thing", "things");
    for name in [&second, &first] {
        world.sets().delete(name, &DeleteParams::default()).await?;
    }
    let blocked = "nothing is removed, because spec.deletion.customResources is Block and there are custom resources; delete them, or \
                   set the field to Keep or Delete; things.example.com holds 1 custom resource";
    for name in [&second, &first] {
        world
            .until(name, "Progressing", "True", "Retrying", blocked)
            .await?;
    }

    // Custom resources of the CRD that only the first revision has block the second, too.
    let relics = custom(&world, "Relic", "relics");
    let relic = json!({"apiVersion": "example.com/v1", "kind": "Relic", "metadata": {"name": "relic", "namespace": NAMESPACE}});
    relics
        .create(&PostParams::default(), &serde_json::from_value(relic)?)
        .await?;
    things.delete("thing", &DeleteParams::default()).await?;
    for name in [&second, &first] {
        let relic = "relics.example.com holds 1 custom resource";
        world
            .until(name, "Progressing", "True", "Retrying", relic)
            .await?;
    }
    ensure!(
        world.maps().get_opt("operator").await?.is_some(),
        "the operator is gone"
    );
    ensure!(
        world.deployments().get_opt("manager").await?.is_some(),
        "the Deployment is gone"
    );

    relics.delete("relic", &DeleteParams::default()).await?;
    world.gone(&second).await?;
    world.gone(&first).await?;
    eventually(LIMIT, "the operator is gone", async || {
        match world.maps().get_opt("operator").await? {
            None => Ok(()),
            Some(_) => bail!("it is there"),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_revision_that_stays_does_not_block() -> Result<()> {
    let world = World::start().await?;
    let first = of_extension(&world).await?;
    world.sets().delete(&first, &DeleteParams::default()).await?;
    world.gone(&first).await?;
    ensure!(
        world.maps().get_opt("operator").await?.is_none(),
        "the operator stays"
    );
    let thing = custom(&world, "Thing", "things").get_opt("thing").await?;
    ensure!(thing.is_some(), "the custom resource is gone");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_revision_goes_along_with_its_extension() -> Result<()> {
    let world = World::start().await?;
    let first = of_extension(&world).await?;
    // Its finalizer holds the extension. A pass that began before has created the newer revision, and nobody has deleted that one yet.
    world
        .extensions()
        .delete("sample", &DeleteParams::default())
        .await?;
    world.sets().delete(&first, &DeleteParams::default()).await?;
    let held = "things.example.com holds 1 custom resource";
    world
        .until(&first, "Progressing", "True", "Retrying", held)
        .await?;
    ensure!(
        world.maps().get_opt("operator").await?.is_some(),
        "the operator is gone"
    );
    Ok(())
}

/// Creates an extension that is [`taken_over`]. Returns its first revision, which has the operator.
async fn of_extension(world: &World) -> Result<String> {
    world
        .create_extension("sample", &[keys::CLEANUP_CONTENT_FINALIZER])
        .await?;
    let (first, _) = taken_over(world, vec![crd(), map("operator", "1")]).await?;
    Ok(first)
}

/// Creates two revisions with the policy Block, the first with these objects and a custom resource. The second has taken its CRD over and
/// waits for its Deployment. Returns their names.
async fn taken_over(world: &World, objects: Vec<Value>) -> Result<(String, String)> {
    let first = world.create("sample", 1, objects).await?;
    world
        .until(&first, "Progressing", "True", "Succeeded", "")
        .await?;
    custom(world, "Thing", "things")
        .create(&PostParams::default(), &serde_json::from_value(thing())?)
        .await?;
    world.pods.set_ready(NAMESPACE, "manager", false).await;
    let second = world.create("sample", 2, vec![crd(), deployment()]).await?;
    world
        .until(&second, "Available", "False", "ProbeFailure", "")
        .await?;
    let annotations = json!({keys::CUSTOM_RESOURCES_ON_DELETE_ANNOTATION: "Block"});
    let block = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    for name in [&second, &first] {
        world.sets().patch(name, &PatchParams::default(), &block).await?;
    }
    Ok((first, second))
}

fn custom(world: &World, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    Api::namespaced_with(world.client.clone(), NAMESPACE, &resource)
}
