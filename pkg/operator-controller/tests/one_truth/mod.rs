//! Every status that a watch sees is one state: the installed version and the conditions agree.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::StreamExt as _;
use kube::Api;
use kube::runtime::{WatchStreamExt as _, watcher};
use olm_api::ClusterExtension;
use parking_lot::Mutex;
use serde_json::json;

use super::{PACKAGE, World};

/// States of an extension: installed version, and the messages of `Progressing` and `Ready`.
type States = Arc<Mutex<Vec<(String, String, String)>>>;

/// Records every state of the extensions until the task is dropped.
fn record(world: &World) -> (States, tokio::task::JoinHandle<()>) {
    let recorded = States::default();
    let (seen, api) = (
        recorded.clone(),
        Api::<ClusterExtension>::all(world.client.clone()),
    );
    let task = tokio::spawn(async move {
        let changes = watcher(api, watcher::Config::default())
            .default_backoff()
            .applied_objects();
        let mut changes = std::pin::pin!(changes);
        while let Some(change) = changes.next().await {
            let Ok(extension) = change else { continue };
            let status = extension.status.unwrap_or_default();
            let message = |type_: &str| {
                let mut conditions = status.conditions.iter().flatten();
                let found = conditions.find(|condition| condition.type_ == type_);
                found
                    .map(|condition| condition.message.clone())
                    .unwrap_or_default()
            };
            let installed = status
                .install
                .as_ref()
                .map(|install| install.bundle.version.clone());
            let state = (
                installed.unwrap_or_default(),
                message("Progressing"),
                message("Ready"),
            );
            seen.lock().push(state);
        }
    });
    (recorded, task)
}

/// A version whose image cannot be pulled is overtaken by a fixed one, which is then upgraded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_status_names_one_version() -> Result<()> {
    let world = World::start().await?;
    world.pods.set_image_pulls("sample:1.0.0", false).await;
    world.publish("catalog:v1", &[("1.0.0", "")]).await?;
    world.apply_catalog("catalog:v1").await?;
    world.create_namespace("sample-ns").await?;
    let (recorded, task) = record(&world);
    world
        .apply_extension("sample", "sample-ns", json!({"packageName": PACKAGE}))
        .await?;
    // The extension says why it waits, too.
    let why = "Revision 1.0.0 is rolling out. Deployment sample-ns/sample is not available: pod ";
    for type_ in ["Progressing", "Ready"] {
        let status = if type_ == "Ready" { "False" } else { "True" };
        let extension = world.until("sample", type_, status, "RollingOut", why).await?;
        let conditions = extension.status.and_then(|status| status.conditions);
        let said = conditions.iter().flatten().any(|condition| {
            condition.type_ == type_
                && condition
                    .message
                    .contains("container manager cannot start: ImagePullBackOff: \"the test says so\".")
        });
        ensure!(said, "{conditions:?}");
    }
    for (tag, versions, version) in [
        ("catalog:v2", &[("1.0.0", ""), ("1.0.1", "1.0.0")][..], "1.0.1"),
        (
            "catalog:v3",
            &[("1.0.0", ""), ("1.0.1", "1.0.0"), ("1.0.2", "1.0.1")][..],
            "1.0.2",
        ),
    ] {
        world.publish(tag, versions).await?;
        world.apply_catalog(tag).await?;
        let done = format!("Revision {version} has rolled out.");
        world
            .until("sample", "Progressing", "True", "Succeeded", &done)
            .await?;
        let ready = format!("Version {version} is installed and available");
        world
            .until("sample", "Ready", "True", "Succeeded", &ready)
            .await?;
    }
    task.abort();

    let states = recorded.lock().clone();
    ensure!(
        states.iter().any(|(version, ..)| version == "1.0.2"),
        "{states:#?}"
    );
    for (installed, progressing, ready) in &states {
        // Versions compare as text here. A version before the installed one is named nowhere.
        for message in [progressing, ready] {
            for version in ["1.0.0", "1.0.1", "1.0.2"] {
                let named = message.contains(&format!("Revision {version} "))
                    || message.contains(&format!("Version {version} "));
                let done = named && (message.contains("has rolled out") || message.contains("is installed"));
                ensure!(
                    !named || version >= installed.as_str(),
                    "{installed} is installed and the status says {message:?}"
                );
                ensure!(
                    !done || version == installed,
                    "{installed:?} is installed and the status says {message:?}"
                );
            }
        }
    }
    Ok(())
}
