//! Outages: an extension's status and actions while a registry or catalogd is away, and its recovery afterwards.

use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use olm_api::{ClusterCatalog, ClusterExtension, ClusterObjectSet, LifecycleState};
use olm_harness::eventually;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::{LIMIT, PACKAGE, World};

const NAME: &str = "sample";
const NAMESPACE: &str = "sample-ns";
/// Archived revisions that are kept.
const ARCHIVED: usize = 5;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outages_are_told_and_end_by_themselves() -> Result<()> {
    let mut world = World::start().await?;
    world.publish("catalog:v1", &[("1.0.0", "")]).await?;
    world.apply_catalog("catalog:v1").await?;
    world.create_namespace(NAMESPACE).await?;
    world
        .apply_extension(NAME, NAMESPACE, json!({"packageName": PACKAGE}))
        .await?;
    ready(&world, "1.0.0").await?;
    a_change_waits_for_the_registry(&mut world).await?;
    a_catalog_is_left_out(&world).await?;
    former_content_stands_in(&mut world).await?;
    five_archived_revisions_stay(&world).await?;
    a_deletion_ends_a_pull(&mut world).await
}

/// A configuration that sets a variable of the environment.
fn config(value: &str) -> Value {
    let env = json!([{"name": "SETTING", "value": value}]);
    json!({"configType": "Inline", "inline": {"deploymentConfig": {"env": env}}})
}

async fn ready(world: &World, version: &str) -> Result<()> {
    let text = format!("Version {version} is installed and available, from catalog \"catalog\".");
    world
        .until(NAME, "Ready", "True", "Succeeded", &text)
        .await
        .map(drop)
}

async fn setting(world: &World) -> Result<Option<String>> {
    let api: Api<Deployment> = Api::namespaced(world.client.clone(), NAMESPACE);
    let deployment = serde_json::to_value(api.get("sample").await?)?;
    let value = deployment.pointer("/spec/template/spec/containers/0/env/0/value");
    Ok(value.and_then(Value::as_str).map(ToOwned::to_owned))
}

async fn revisions(world: &World) -> Result<Vec<ClusterObjectSet>> {
    let mut all = world.revisions().await?;
    all.sort_by_key(|set| set.spec.revision);
    Ok(all)
}

async fn sees_event(world: &World, reason: &str) -> Result<()> {
    let api: Api<Event> = Api::namespaced(world.client.clone(), "default");
    eventually(LIMIT, &format!("event {reason}"), async || {
        let events = api.list(&ListParams::default()).await?.items;
        let reasons: Vec<String> = events.into_iter().filter_map(|event| event.reason).collect();
        ensure!(reasons.iter().any(|told| told == reason), "{reasons:?}");
        Ok(())
    })
    .await
}

/// Answers 503 to everything on the port of a registry that does not run.
async fn unavailable(host: &str) -> Result<AbortOnDropHandle<()>> {
    let address: SocketAddr = host.parse()?;
    let listener = eventually(LIMIT, "the registry has left its port", async || {
        Ok(TcpListener::bind(address).await?)
    })
    .await?;
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let answer =
                    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(answer).await;
            });
        }
    })))
}

/// A registry that accepts connections and never answers does not hold up a deletion.
async fn a_deletion_ends_a_pull(world: &mut World) -> Result<()> {
    world.registry.stop();
    let address: SocketAddr = world.registry.host().parse()?;
    let silent = eventually(LIMIT, "the registry has left its port", async || {
        Ok(TcpListener::bind(address).await?)
    })
    .await?;
    world
        .apply_extension("pulling", NAMESPACE, json!({"packageName": PACKAGE}))
        .await?;
    // The connection stays open, so that the pull waits for an answer.
    let (_connection, _) = tokio::time::timeout(LIMIT, silent.accept()).await??;
    let api: Api<ClusterExtension> = Api::all(world.client.clone());
    api.delete("pulling", &DeleteParams::default()).await?;
    eventually(LIMIT, "the extension is gone", async || {
        ensure!(api.get_opt("pulling").await?.is_none(), "still there");
        Ok(())
    })
    .await
}

async fn a_change_waits_for_the_registry(world: &mut World) -> Result<()> {
    world.registry.stop();
    let outage = unavailable(&world.registry.host()).await?;
    // What the tag meant is remembered for a while only.
    world.controller.lock().await.controller().restart().await?;

    // A deadline needs no image.
    world
        .patch(NAME, &json!({"spec": {"progressDeadlineMinutes": 30}}))
        .await?;
    eventually(LIMIT, "the revision has the deadline", async || {
        let deadlines: Vec<_> = revisions(world)
            .await?
            .iter()
            .map(|set| set.spec.progress_deadline_minutes)
            .collect();
        ensure!(deadlines == [Some(30)], "{deadlines:?}");
        Ok(())
    })
    .await?;
    ready(world, "1.0.0").await?;

    // A configuration does, and says so.
    world
        .patch(NAME, &json!({"spec": {"config": config("one")}}))
        .await?;
    let waits =
        "The changed spec is rolled out when the image can be found; until then revision \"sample-1\" stays";
    let extension = world
        .until(NAME, "Progressing", "True", "Retrying", waits)
        .await?;
    let told = serde_json::to_string(&extension.status)?;
    ensure!(told.contains("503"), "{told}");
    ensure!(setting(world).await?.is_none());

    outage.abort();
    // The port is free once the task has ended, not before.
    ensure!(
        outage.await.is_err_and(|ended| ended.is_cancelled()),
        "the outage ended by itself"
    );
    world.registry.restart().await?;
    ready(world, "1.0.0").await?;
    ensure!(setting(world).await?.as_deref() == Some("one"));
    Ok(())
}

async fn a_catalog_is_left_out(world: &World) -> Result<()> {
    let low = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "low"},
        "spec": {"priority": -1, "source": {"type": "Image",
            "image": {"ref": format!("{}/absent:latest", world.registry.host())}}},
    });
    let api: Api<ClusterCatalog> = Api::all(world.client.clone());
    api.patch("low", &PatchParams::apply("test"), &Patch::Apply(low))
        .await?;
    let text = "Catalog \"low\" is left out: catalog \"low\" is not being served.";
    world
        .until(NAME, "CatalogsDegraded", "True", "LeftOut", text)
        .await?;
    ready(world, "1.0.0").await?;
    sees_event(world, "CatalogLeftOut").await?;
    api.delete("low", &DeleteParams::default()).await?;
    recovered(world).await
}

/// Waits until nothing is said of catalogs any more.
async fn recovered(world: &World) -> Result<()> {
    let api: Api<ClusterExtension> = Api::all(world.client.clone());
    eventually(LIMIT, "the catalogs are read again", async || {
        let status = api.get(NAME).await?.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let told = conditions.iter().find(|c| c.type_ == "CatalogsDegraded");
        ensure!(told.is_none(), "{told:?}");
        Ok(())
    })
    .await?;
    sees_event(world, "CatalogsRecovered").await
}

async fn former_content_stands_in(world: &mut World) -> Result<()> {
    let catalogs: Api<ClusterCatalog> = Api::all(world.client.clone());
    world.catalogd.controller().stop();
    let digest = world
        .publish("catalog:v1", &[("1.0.0", ""), ("1.0.1", "1.0.0")])
        .await?;
    let reference = format!("{}/catalog@{digest}", world.registry.host());
    let resolved = json!({"status": {"resolvedSource": {"type": "Image", "image": {"ref": reference}}}});
    catalogs
        .patch_status("catalog", &PatchParams::default(), &Patch::Merge(&resolved))
        .await?;
    let text = "The present content of catalog \"catalog\" cannot be read since ";
    world
        .until(NAME, "CatalogsDegraded", "True", "FormerContent", text)
        .await?;
    world
        .until(NAME, "UpgradeAvailable", "Unknown", "FormerContent", "")
        .await?;
    ready(world, "1.0.0").await?;
    sees_event(world, "CatalogFormerContent").await?;

    // Tries go on, and write nothing while they fail alike.
    let tries =
        || -> Result<usize> { Ok(world.log()?.matches("using stale content of the package").count()) };
    let (before, attempts) = (world.versions().await?, tries()?);
    eventually(LIMIT, "it is attempts again", async || {
        let now = tries()?;
        ensure!(now >= attempts + 2, "{now} of {attempts} + 2");
        Ok(())
    })
    .await?;
    ensure!(
        world.versions().await? == before,
        "a try that fails alike writes a status"
    );

    // catalogd comes back with nothing on its disk, and with the digest that the status names already.
    std::fs::remove_dir_all(&world.cache).context("the cache stays")?;
    world.catalogd.controller().restart().await?;
    ready(world, "1.0.1").await?;
    world
        .until(NAME, "UpgradeAvailable", "False", "UpToDate", "")
        .await?;
    recovered(world).await
}

async fn five_archived_revisions_stay(world: &World) -> Result<()> {
    // None of these rolls out before the last one is there.
    world.pods.set_ready(NAMESPACE, "sample", false).await;
    let first = revisions(world).await?.last().map_or(0, |set| set.spec.revision);
    for number in 1..=7 {
        world
            .patch(
                NAME,
                &json!({"spec": {"config": config(&format!("rapid-{number}"))}}),
            )
            .await?;
        eventually(LIMIT, "there is a revision for it", async || {
            let newest = revisions(world).await?.last().map(|set| set.spec.revision);
            ensure!(newest == Some(first + number), "{newest:?}");
            Ok(())
        })
        .await?;
    }
    world.pods.set_ready(NAMESPACE, "sample", true).await;
    ready(world, "1.0.1").await?;
    eventually(LIMIT, "five archived revisions are left", async || {
        let all = revisions(world).await?;
        let names: Vec<String> = all.iter().map(ResourceExt::name_any).collect();
        let archived = |set: &&ClusterObjectSet| set.spec.lifecycle_state == LifecycleState::Archived;
        let count = all.iter().filter(archived).count();
        ensure!(
            (all.len(), count) == (ARCHIVED + 1, ARCHIVED),
            "{count} of {names:?}"
        );
        Ok(())
    })
    .await
}
