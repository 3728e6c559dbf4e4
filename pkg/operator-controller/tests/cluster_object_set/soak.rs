//! Soaks of revisions whose objects change.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use olm_harness::eventually;
use serde_json::{Value, json};

use super::world::{LIMIT, NAMESPACE, World, create_with};

/// Kind with a status that nobody but the test writes.
fn crd() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "gauges.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge", "listKind": "GaugeList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn gauge() -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gauge", "metadata": {"name": "gauge", "namespace": NAMESPACE}, "spec": {"a": 1}})
}

fn gauges(world: &World) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", "Gauge");
    Api::namespaced_with(world.client.clone(), NAMESPACE, &ApiResource::from_gvk(&kind))
}

/// Writes the status of the gauge for its present generation, as a controller does.
async fn update_status(world: &World) -> Result<()> {
    eventually(LIMIT, "the status is written", async || {
        let generation = gauges(world).get("gauge").await?.metadata.generation;
        let status = json!({"status": {"observedGeneration": generation, "conditions": [{"type": "Ready", "status": "True"}]}});
        let params = PatchParams::default();
        gauges(world)
            .patch_status("gauge", &params, &Patch::Merge(&status))
            .await?;
        Ok(())
    })
    .await
}

/// Changes a field that the revision does not have, as an autoscaler does.
async fn scale(world: &World, size: i64) -> Result<()> {
    let patch = json!({"spec": {"size": size}});
    gauges(world)
        .patch("gauge", &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    Ok(())
}

/// Returns the reason of `Progressing` and the start of the soak; fails if the revision is not available.
async fn soak(world: &World, name: &str) -> Result<(String, Timestamp)> {
    let status = world.sets().get(name).await?.status.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let find = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
    match (find("Progressing"), find("Available")) {
        (Some(progressing), Some(available)) if available.status == "True" => {
            Ok((progressing.reason.clone(), available.last_transition_time.0))
        }
        _ => bail!("{conditions:#?}"),
    }
}

/// A status that is outdated for a moment does not end a soak; one that stays outdated does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_soak_fails_only_if_a_status_stays_outdated() -> Result<()> {
    let world = World::start().await?;
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    crds.create(&PostParams::default(), &serde_json::from_value(crd())?)
        .await?;
    eventually(LIMIT, "the kind is served", async || {
        gauges(&world).get_opt("gauge").await?;
        Ok(())
    })
    .await?;
    let ready = json!({"type": "ConditionEqual", "conditionEqual": {"type": "Ready", "status": "True"}});
    let selector = json!({"type": "GroupKind", "groupKind": {"group": "example.com", "kind": "Gauge"}});
    let spec = json!({"soak": "1h", "progressionProbes": [{"selector": selector, "assertions": [ready]}]});
    create_with(&world, "soaks-1", spec, &[gauge()]).await?;
    update_status(&world).await?;
    world
        .until("soaks-1", "Progressing", "True", "Soaking", "")
        .await?;
    let soaking = soak(&world, "soaks-1").await?;

    scale(&world, 2).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let during = soak(&world, "soaks-1").await?;
    ensure!(during == soaking, "{during:?}");
    update_status(&world).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let after = soak(&world, "soaks-1").await?;
    ensure!(after == soaking, "{after:?}");

    let start = Instant::now();
    scale(&world, 3).await?;
    tokio::time::sleep(Duration::from_secs(15)).await;
    // Another change of the spec gives no new grace.
    scale(&world, 4).await?;
    world
        .until(
            "soaks-1",
            "Progressing",
            "False",
            "SoakFailed",
            ".status outdated",
        )
        .await?;
    let lasted = start.elapsed().as_secs();
    ensure!((29..42).contains(&lasted), "the grace lasted {lasted} s");
    Ok(())
}
