//! Secrets with the objects of a revision: their owners, and what a late write leaves of a former extension.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, PostParams};
use kube::{Api, Resource as _, ResourceExt};
use olm_api::{ClusterExtension, keys};
use olm_harness::controllers::SYSTEM_NAMESPACE;
use olm_harness::eventually;
use serde_json::json;

use super::{LIMIT, PACKAGE, World, bundle};

const NAME: &str = "sample";
const NAMESPACE: &str = "sample-ns";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_of_a_former_extension_is_replaced() -> Result<()> {
    let mut world = World::start().await?;
    world.publish("catalog:v1", &[("1.0.0", "")]).await?;
    // A bundle with a Secret is never stored inline.
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"token": "t"}});
    bundle("1.0.0", true)
        .file("manifests/token.yaml", token.to_string())
        .push(&world.registry, "bundles/sample:1.0.0")
        .await?;
    world.apply_catalog("catalog:v1").await?;
    world.create_namespace(NAMESPACE).await?;
    install(&world).await?;
    ready(&world).await?;
    let extensions: Api<ClusterExtension> = Api::all(world.client.clone());
    let former = extensions.get(NAME).await?;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), SYSTEM_NAMESPACE);
    let of_extension = ListParams::default().labels(&format!("{}={NAME}", keys::OWNER_NAME_LABEL));
    let all = secrets.list(&of_extension).await?.items;
    let mut left = all.into_iter().next().context("the revision has no Secret")?;
    belongs_to_its_revision(&left)?;
    let name = left.name_any();
    world.delete(NAME).await?;
    eventually(LIMIT, "the Secret is gone", async || {
        ensure!(secrets.get_opt(&name).await?.is_none(), "{name} is there");
        Ok(())
    })
    .await?;

    // A late write leaves the Secret, and no garbage collector is there to delete it.
    world.plane.controller_manager().signal("STOP")?;
    left.metadata.resource_version = None;
    left.metadata.owner_references = former.owner_ref(&()).map(|owner| vec![owner]);
    let left = secrets.create(&PostParams::default(), &left).await?;
    install(&world).await?;
    let replaced = eventually(LIMIT, "the revision has a Secret of its own", async || {
        let secret = secrets.get(&name).await?;
        ensure!(secret.uid() != left.uid(), "it is that of the former extension");
        belongs_to_its_revision(&secret)
    })
    .await;
    world.plane.controller_manager().signal("CONT")?;
    replaced?;
    ready(&world).await
}

fn belongs_to_its_revision(secret: &Secret) -> Result<()> {
    let owners: Vec<&str> = secret
        .owner_references()
        .iter()
        .map(|owner| owner.kind.as_str())
        .collect();
    ensure!(owners == ["ClusterObjectSet"], "it belongs to {owners:?}");
    Ok(())
}

async fn install(world: &World) -> Result<()> {
    world
        .apply_extension(NAME, NAMESPACE, json!({"packageName": PACKAGE}))
        .await
}

async fn ready(world: &World) -> Result<()> {
    let text = "Version 1.0.0 is installed and available";
    world
        .until(NAME, "Ready", "True", "Succeeded", text)
        .await
        .map(drop)
}
