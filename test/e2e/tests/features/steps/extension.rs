//! Steps about the ClusterExtension: its spec and its status.

use std::time::Duration;

use anyhow::Context as _;
use cucumber::gherkin::Step;
use cucumber::{given, then, when};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::expect_condition;
use crate::world::OlmWorld;

/// Duration of a "stays" check: that of several reconciles.
const STAYS_DURATION: Duration = Duration::from_secs(3);

#[when(regex = r"^ClusterExtension is (?:applied|updated)$")]
#[given(regex = r"^resource is applied$")]
#[when(regex = r"^resource is applied$")]
async fn apply(world: &mut OlmWorld, step: &Step) -> anyhow::Result<()> {
    let object = world.document(step.docstring.as_deref().context("the step has no text block")?)?;
    world.cluster().apply(&object).await
}

/// The API server takes a moment to apply a CRD that changed.
#[when("resource is eventually applied")]
async fn apply_eventually(world: &mut OlmWorld, step: &Step) -> anyhow::Result<()> {
    let object = world.document(step.docstring.as_deref().context("the step has no text block")?)?;
    world
        .eventually("the object to be accepted", async || {
            world.cluster().apply(&object).await
        })
        .await;
    Ok(())
}

#[then(regex = r#"^resource is refused because "([^"]+)"$"#)]
async fn refused(world: &mut OlmWorld, step: &Step, why: String) -> anyhow::Result<()> {
    let object = world.document(step.docstring.as_deref().context("the step has no text block")?)?;
    match world.cluster().apply(&object).await {
        Ok(()) => anyhow::bail!("the API server accepts it"),
        Err(error) => {
            let text = format!("{error:#}");
            anyhow::ensure!(text.contains(&why), "{text}");
            Ok(())
        }
    }
}

#[when("ClusterExtension is removed")]
async fn remove(world: &mut OlmWorld) -> anyhow::Result<()> {
    delete(world).await?;
    gone(world).await;
    Ok(())
}

#[when("deletion of ClusterExtension is requested")]
async fn delete(world: &mut OlmWorld) -> anyhow::Result<()> {
    let (api, name) = world.cluster().lookup(&extension(world), "").await?;
    api.delete(&name, &DeleteParams::default()).await?;
    Ok(())
}

#[then("ClusterExtension is gone")]
async fn gone(world: &mut OlmWorld) {
    let cluster = world.cluster();
    let reference = extension(world);
    world
        .eventually(&format!("{reference} to be gone"), async || {
            match cluster.get(&reference, "").await? {
                None => Ok(()),
                Some(object) => anyhow::bail!("still there: {}", object.data["status"]),
            }
        })
        .await;
}

#[then("ClusterExtension is rolled out")]
async fn rolled_out(world: &mut OlmWorld) {
    let reference = extension(world);
    world
        .eventually("the extension to be rolled out", async || {
            let object = current(world, &reference).await?;
            expect_condition(&object["status"], "Progressing", "True", Some("Succeeded"), None)?;
            let generation = &object["metadata"]["generation"];
            let observed =
                &super::condition(&object["status"], "Progressing").context("gone")?["observedGeneration"];
            anyhow::ensure!(
                generation == observed,
                "generation {generation} is not observed yet ({observed})"
            );
            Ok(())
        })
        .await;
}

#[then("ClusterExtension is available")]
async fn available(world: &mut OlmWorld) {
    reports(world, "Installed", "True", None, None).await;
}

#[then(regex = r"^ClusterExtension reports (\w+) as (\w+) with Reason (\w+)$")]
async fn reports_reason(world: &mut OlmWorld, type_: String, state: String, reason: String) {
    reports(world, &type_, &state, Some(&reason), None).await;
}

#[then(regex = r"^ClusterExtension reports (\w+) as (\w+) with Reason (\w+) and Message includes:$")]
async fn reports_message(world: &mut OlmWorld, step: &Step, type_: String, state: String, reason: String) {
    let message = world.expand(step.docstring.as_deref().unwrap_or_default().trim());
    reports(world, &type_, &state, Some(&reason), Some(&message)).await;
}

#[then(
    regex = r#"^ClusterExtension "([^"]+)" reports (\w+) as (\w+) with Reason (\w+) and Message includes:$"#
)]
async fn another_reports(
    world: &mut OlmWorld,
    step: &Step,
    name: String,
    type_: String,
    state: String,
    reason: String,
) {
    let reference = format!("clusterextension/{}", world.expand(&name));
    let message = world.expand(step.docstring.as_deref().unwrap_or_default().trim());
    world
        .eventually(&format!("{reference} to report {type_} as {state}"), async || {
            let object = current(world, &reference).await?;
            expect_condition(&object["status"], &type_, &state, Some(&reason), Some(&message))
        })
        .await;
}

#[then(regex = r#"^ClusterExtension reports "([^"]+)" as active revisions?$"#)]
async fn active_revisions(world: &mut OlmWorld, names: String) {
    let names = world.expand(&names);
    let wanted: Vec<&str> = names.split(',').map(str::trim).collect();
    let reference = extension(world);
    world
        .eventually("the extension's active revisions", async || {
            let object = current(world, &reference).await?;
            let active = &object["status"]["activeRevisions"];
            let names: Vec<&str> = active
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|revision| revision["name"].as_str())
                .collect();
            anyhow::ensure!(names == wanted, "they are {active}");
            Ok(())
        })
        .await;
}

#[then(regex = r#"^bundle "([^"]+)" is installed in version "([^"]+)"$"#)]
async fn installed(world: &mut OlmWorld, bundle: String, version: String) {
    let wanted = json!({"name": world.expand(&bundle), "version": version});
    let reference = extension(world);
    world
        .eventually(&format!("{wanted} to be installed"), async || {
            let object = current(world, &reference).await?;
            anyhow::ensure!(
                is_installed(&object, &wanted),
                "the status is {}",
                object["status"]
            );
            Ok(())
        })
        .await;
}

#[then(regex = r#"^bundle "([^"]+)" remains installed in version "([^"]+)"$"#)]
async fn stays_installed(world: &mut OlmWorld, bundle: String, version: String) -> anyhow::Result<()> {
    let wanted = json!({"name": world.expand(&bundle), "version": version});
    let reference = extension(world);
    tokio::time::sleep(STAYS_DURATION).await;
    let object = current(world, &reference).await?;
    anyhow::ensure!(
        is_installed(&object, &wanted),
        "it did not stay: the status is {}",
        object["status"]
    );
    Ok(())
}

#[then(regex = r#"^catalog object "([^"]+)" reports (\w+) as (\w+) with Reason (\w+)$"#)]
async fn catalog_reports(world: &mut OlmWorld, name: String, type_: String, state: String, reason: String) {
    let reference = format!("clustercatalog/{}", world.expand(&name));
    world
        .eventually(&format!("{reference} to report {type_}"), async || {
            let object = current(world, &reference).await?;
            expect_condition(&object["status"], &type_, &state, Some(&reason), None)
        })
        .await;
}

fn extension(world: &OlmWorld) -> String {
    format!("clusterextension/{}", world.name())
}

fn is_installed(object: &Value, wanted: &Value) -> bool {
    let bundle = &object["status"]["install"]["bundle"];
    bundle["name"] == wanted["name"] && bundle["version"] == wanted["version"]
}

async fn current(world: &OlmWorld, reference: &str) -> anyhow::Result<Value> {
    let object = world
        .cluster()
        .get(reference, "")
        .await?
        .with_context(|| format!("{reference} is not there"))?;
    Ok(serde_json::to_value(object)?)
}

async fn reports(world: &OlmWorld, type_: &str, state: &str, reason: Option<&str>, message: Option<&str>) {
    let reference = extension(world);
    world
        .eventually(
            &format!("the extension to report {type_} as {state}"),
            async || {
                let object = current(world, &reference).await?;
                expect_condition(&object["status"], type_, state, reason, message)
            },
        )
        .await;
}
