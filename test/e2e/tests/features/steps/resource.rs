//! Steps about the objects of an extension.

use anyhow::Context as _;
use cucumber::gherkin::Step;
use cucumber::{given, then, when};
use kube::api::DeleteParams;
use olm_api::keys::KEPT_FROM_LABEL;
use olm_e2e::cluster::contains;
use serde_json::{Value, json};

use super::expect_condition;
use crate::world::OlmWorld;

#[then(regex = r#"^resource "([^"]+)" is (?:installed|available)$"#)]
async fn available(world: &mut OlmWorld, reference: String) {
    let reference = world.expand(&reference);
    world
        .eventually(&format!("{reference} to be available"), async || {
            let object = current(world, &reference).await?;
            if reference.starts_with("deployment/") {
                expect_condition(&object["status"], "Available", "True", None, None)?;
            }
            Ok(())
        })
        .await;
}

#[then(regex = r#"^resource "([^"]+)" is (?:not installed|eventually not found)$"#)]
async fn absent(world: &mut OlmWorld, reference: String) {
    let reference = world.expand(&reference);
    world
        .eventually(&format!("{reference} to be gone"), async || {
            let found = world.cluster().get(&reference, &world.namespace()).await?;
            anyhow::ensure!(found.is_none(), "it is still there");
            Ok(())
        })
        .await;
}

#[then(regex = r#"^resource "([^"]+)" matches$"#)]
async fn matches(world: &mut OlmWorld, step: &Step, reference: String) -> anyhow::Result<()> {
    let reference = world.expand(&reference);
    let wanted = strings(world.document(step.docstring.as_deref().context("the step has no text block")?)?);
    world
        .eventually(&format!("{reference} to hold {wanted}"), async || {
            let object = current(world, &reference).await?;
            anyhow::ensure!(contains(&object, &wanted), "it is {object}");
            Ok(())
        })
        .await;
    Ok(())
}

#[then(regex = r#"^resource "([^"]+)" is no longer labeled as kept$"#)]
async fn adopted(world: &mut OlmWorld, reference: String) {
    let reference = world.expand(&reference);
    world
        .eventually(&format!("{reference} to lose its label"), async || {
            let labels = current(world, &reference).await?["metadata"]["labels"].take();
            anyhow::ensure!(labels.get(KEPT_FROM_LABEL).is_none(), "it has {labels}");
            Ok(())
        })
        .await;
}

#[when(regex = r#"^resource "([^"]+)" is changed$"#)]
async fn change(world: &mut OlmWorld, step: &Step, reference: String) -> anyhow::Result<()> {
    let change = world.document(step.docstring.as_deref().context("the step has no text block")?)?;
    world
        .cluster()
        .merge(&world.expand(&reference), &world.namespace(), &change)
        .await
}

#[when(regex = r#"^resource "([^"]+)" is removed$"#)]
async fn remove(world: &mut OlmWorld, reference: String) -> anyhow::Result<()> {
    let reference = world.expand(&reference);
    let uid = uid(&current(world, &reference).await?);
    let (api, name) = world.cluster().lookup(&reference, &world.namespace()).await?;
    api.delete(&name, &DeleteParams::default()).await?;
    world.removed.insert(reference, uid);
    Ok(())
}

#[then(regex = r#"^resource "([^"]+)" is eventually restored$"#)]
async fn restored(world: &mut OlmWorld, reference: String) {
    let reference = world.expand(&reference);
    let before = world
        .removed
        .get(&reference)
        .cloned()
        .expect("the scenario removed it");
    world
        .eventually(&format!("{reference} to come back"), async || {
            let object = current(world, &reference).await?;
            anyhow::ensure!(uid(&object) != before, "the removed object is still there");
            Ok(())
        })
        .await;
}

/// Repeats the change each time the extension has taken its fields back.
#[when(regex = r#"^"(\w+)" keeps changing "configmap/([^"]+)" until ClusterExtension reports it$"#)]
async fn change_repeatedly(world: &mut OlmWorld, manager: String, name: String) {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": world.expand(&name), "namespace": world.namespace()}, "data": {"version": "theirs"},
    });
    let extension = format!("clusterextension/{}", world.name());
    let named = format!("conflict with \"{manager}\"");
    world
        .eventually(&format!("{extension} to tell of a {named}"), async || {
            world.cluster().apply_as(&manager, &object).await?;
            let status = current(world, &extension).await?["status"].take();
            expect_condition(&status, "Progressing", "True", Some("Retrying"), Some(&named))
        })
        .await;
}

#[given(regex = r#"^deployment "([^"]+)" reports as (not ready|ready)$"#)]
#[when(regex = r#"^deployment "([^"]+)" reports as (not ready|ready)$"#)]
async fn readiness(world: &mut OlmWorld, name: String, state: String) {
    let name = world.expand(&name);
    world
        .environment
        .pods
        .set_ready(&world.namespace(), &name, state == "ready")
        .await;
}

#[then(regex = r#"^operator "([^"]+)" target namespace is "([^"]+)"$"#)]
async fn target_namespace(world: &mut OlmWorld, name: String, namespace: String) {
    let reference = format!("deployment/{}", world.expand(&name));
    let wanted = world.expand(&namespace);
    world
        .eventually(&format!("{reference} to watch {wanted}"), async || {
            let object = current(world, &reference).await?;
            let found = &object["spec"]["template"]["metadata"]["annotations"]["olm.targetNamespaces"];
            anyhow::ensure!(*found == wanted, "it watches {found}");
            Ok(())
        })
        .await;
}

#[then("ClusterExtension resources are created and labeled")]
async fn labeled(world: &mut OlmWorld) {
    // A kind of a new CRD is not listed immediately.
    world
        .eventually("the extension's labeled objects", async || {
            let found = owned(world).await?;
            anyhow::ensure!(
                found.iter().any(|object| !object.starts_with("ClusterObjectSet")),
                "only {found:?}"
            );
            Ok(())
        })
        .await;
}

#[then("the ClusterExtension's constituent resources are removed")]
#[then("no object labeled for the ClusterExtension remains")]
async fn nothing_left(world: &mut OlmWorld) {
    world
        .eventually("all objects of the extension to be gone", async || {
            let left = owned(world).await?;
            anyhow::ensure!(left.is_empty(), "left: {left:?}");
            Ok(())
        })
        .await;
}

async fn owned(world: &OlmWorld) -> anyhow::Result<Vec<String>> {
    world
        .cluster()
        .labeled(&format!("{}={}", olm_api::keys::OWNER_NAME_LABEL, world.name()))
        .await
}

async fn current(world: &OlmWorld, reference: &str) -> anyhow::Result<Value> {
    let found = world.cluster().get(reference, &world.namespace()).await?;
    Ok(serde_json::to_value(
        found.with_context(|| format!("{reference} is not there"))?,
    )?)
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// Converts `ConfigMap` data to strings: a text block may have the number `1.0`.
fn strings(mut value: Value) -> Value {
    if let Some(data) = value.get_mut("data").and_then(Value::as_object_mut) {
        for entry in data.values_mut() {
            if !entry.is_string() {
                *entry = Value::String(entry.to_string());
            }
        }
    }
    value
}

/// Finalizer that only the steps remove.
const TEST_FINALIZER: &str = "e2e.example.com/held";

#[when(regex = r#"^a finalizer of a test keeps resource "([^"]+)"$"#)]
async fn keep(world: &mut OlmWorld, reference: String) -> anyhow::Result<()> {
    set_finalizers(world, &reference, &[TEST_FINALIZER]).await
}

#[when(regex = r#"^the finalizer of the test is removed from resource "([^"]+)"$"#)]
async fn let_go(world: &mut OlmWorld, reference: String) -> anyhow::Result<()> {
    set_finalizers(world, &reference, &[]).await
}

async fn set_finalizers(world: &OlmWorld, reference: &str, finalizers: &[&str]) -> anyhow::Result<()> {
    let change = json!({"metadata": {"finalizers": finalizers}});
    let reference = world.expand(reference);
    world
        .cluster()
        .merge(&reference, &world.namespace(), &change)
        .await
}

#[then(regex = r#"^resource "([^"]+)" is being deleted while resource "([^"]+)" stays$"#)]
async fn deleted_first(world: &mut OlmWorld, first: String, later: String) -> anyhow::Result<()> {
    let (first, later) = (world.expand(&first), world.expand(&later));
    world
        .eventually(&format!("{first} to be deleted"), async || {
            let object = current(world, &first).await?;
            let deleted = object["metadata"].get("deletionTimestamp").is_some();
            anyhow::ensure!(deleted, "it is {}", object["metadata"]);
            Ok(())
        })
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let object = current(world, &later).await?;
    let deleted = object["metadata"].get("deletionTimestamp").is_some();
    anyhow::ensure!(!deleted, "{later} is deleted before {first} is gone");
    Ok(())
}
