//! Steps about status conditions for tools, and about events.

use anyhow::Context as _;
use cucumber::then;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};

use crate::world::OlmWorld;

#[then(regex = r#"^ClusterExtension is installed from catalog "([^"]+)"$"#)]
async fn catalog(world: &mut OlmWorld, name: String) {
    source(world, &name, None).await;
}

#[then(regex = r#"^ClusterExtension is installed from catalog "([^"]+)" after a move from "([^"]+)"$"#)]
async fn moved(world: &mut OlmWorld, name: String, from: String) {
    source(world, &name, Some(&from)).await;
}

async fn source(world: &OlmWorld, name: &str, from: Option<&str>) {
    let reference = format!("clusterextension/{}", world.name());
    let wanted = json!(world.catalog(name));
    let from = from.map_or(Value::Null, |from| json!(world.catalog(from)));
    world
        .eventually(&format!("the extension to be of {wanted}"), async || {
            let object = world.cluster().get(&reference, "").await?.context("not there")?;
            let install = &object.data["status"]["install"];
            anyhow::ensure!(
                install["catalog"] == wanted && install["movedFrom"] == from,
                "it is {install}"
            );
            Ok(())
        })
        .await;
}

#[then(regex = r"^ClusterExtension has events: (.+)$")]
async fn events(world: &mut OlmWorld, reasons: String) {
    let name = world.name();
    expect_events(world, &name, &reasons).await;
}

#[then(regex = r#"^ClusterExtension "([^"]+)" has events: (.+)$"#)]
async fn events_of(world: &mut OlmWorld, name: String, reasons: String) {
    let name = world.expand(&name);
    expect_events(world, &name, &reasons).await;
}

#[then(regex = r"^the ClusterExtension has no event (\w+)$")]
async fn no_event(world: &mut OlmWorld, reason: String) -> anyhow::Result<()> {
    let api: Api<Event> = Api::namespaced(world.cluster().client(), "default");
    let params = ListParams::default().fields(&format!("regarding.name={},reason={reason}", world.name()));
    let found = api.list(&params).await?.items;
    let notes: Vec<_> = found.iter().filter_map(|event| event.note.as_deref()).collect();
    anyhow::ensure!(notes.is_empty(), "{notes:?}");
    Ok(())
}

/// Checks that repeated events are aggregated in one event with a count.
#[then(regex = r"^ClusterExtension has one aggregated (\w+) event$")]
async fn counted(world: &mut OlmWorld, reason: String) {
    let api: Api<Event> = Api::namespaced(world.cluster().client(), "default");
    let params = ListParams::default().fields(&format!("regarding.name={},reason={reason}", world.name()));
    world
        .eventually(&format!("one event {reason} that counts"), async || {
            let found = api.list(&params).await?.items;
            let [only] = found.as_slice() else {
                anyhow::bail!("there are {}", found.len());
            };
            let count = only.series.as_ref().map_or(1, |series| series.count);
            anyhow::ensure!(count > 1, "it counts {count}");
            Ok(())
        })
        .await;
}

async fn expect_events(world: &OlmWorld, name: &str, reasons: &str) {
    // Events about cluster-scoped objects are in this namespace.
    let api: Api<Event> = Api::namespaced(world.cluster().client(), "default");
    let about = |event: &&Event| {
        let regarding = event.regarding.as_ref().and_then(|object| object.name.as_deref());
        regarding == Some(name)
    };
    world
        .eventually(&format!("events {reasons}"), async || {
            let found = api.list(&ListParams::default()).await?.items;
            let own = found.iter().filter(about);
            let reasons_found: Vec<&str> = own.filter_map(|event| event.reason.as_deref()).collect();
            for reason in reasons.split(',').map(str::trim) {
                anyhow::ensure!(
                    reasons_found.contains(&reason),
                    "there are only {reasons_found:?}"
                );
            }
            Ok(())
        })
        .await;
}
