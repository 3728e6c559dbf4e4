//! Names that no API server accepts, or that mean something in a URL.

use anyhow::{Result, ensure};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use olm_harness::eventually;
use serde_json::{Value, json};

use super::world::{LIMIT, NAMESPACE, World, create_with, map};

fn role(name: &str) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": []})
}

/// A revision that holds impossible names, as earlier versions accepted, says so, writes nothing of it, and can be deleted; a name
/// that is possible but odd is a name, and no query.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_names_are_names_and_impossible_ones_are_passed_over() -> Result<()> {
    let world = World::start().await?;
    let roles: Api<ClusterRole> = Api::all(world.client.clone());
    let kinds: Vec<Value> = ["a\u{1b}[31m\n\0b", "a?dryRun=All&x=", "a/b", "..", "a%2Fb", ""]
        .iter()
        .map(|name| map(name, "1"))
        .collect();
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "credentials", "namespace": NAMESPACE}, "stringData": {"user": "app"}});
    let mut elsewhere = map("elsewhere", "1");
    elsewhere["metadata"]["namespace"] = json!("workload/configmaps/x?");
    let mut version = map("version", "1");
    version["apiVersion"] = json!("v1/../../x");
    for (number, object) in kinds
        .into_iter()
        .chain([elsewhere, version, role("a/b")])
        .enumerate()
    {
        // Kept in Secrets, where the API server does not look at the names.
        let objects = vec![map("good", "1"), secret.clone(), object.clone()];
        let name = world.create(&format!("impossible{number}"), 1, objects).await?;
        let no_name = object["metadata"]["name"] == "";
        let (status, reason, text) = if no_name {
            ("True", "Retrying", "an object has no kind or no name")
        } else {
            (
                "False",
                "Blocked",
                "the API server accepts no object under these names: ",
            )
        };
        world.until(&name, "Progressing", status, reason, text).await?;
        let told = world.sets().get(&name).await?.status.unwrap_or_default();
        let raw = told
            .conditions
            .iter()
            .flatten()
            .any(|c| c.message.contains(|c: char| c.is_control() && c != '\n'));
        ensure!(!raw, "{told:#?}");
        ensure!(
            world.maps().get_opt("good").await?.is_none(),
            "{object} was accepted"
        );
        // As if it had been applied by an earlier version.
        let finalizer = json!({"metadata": {"finalizers": [olm_api::keys::TEARDOWN_FINALIZER]}});
        let (params, patch) = (
            kube::api::PatchParams::default(),
            kube::api::Patch::Merge(&finalizer),
        );
        world.sets().patch(&name, &params, &patch).await?;
        world.sets().delete(&name, &DeleteParams::default()).await?;
        world.gone(&name).await?;
    }
    let events: Api<Event> = Api::namespaced(world.client.clone(), "default");
    eventually(LIMIT, "an event says what was passed over", async || {
        let list = events.list(&ListParams::default()).await?;
        let told = list.items.iter().any(|event| {
            let note = event.note.as_deref().unwrap_or_default();
            event.reason.as_deref() == Some("ObjectsPassedOver")
                && note.contains("metadata.name \"a/b\" may not contain '/'")
        });
        ensure!(told, "{:#?}", list.items);
        Ok(())
    })
    .await?;

    // The API server takes nearly everything as the name of a role.
    let odd = ["a?dryRun=All&x=", "System:odd #1", "tinted\u{1b}[31m"];
    let objects: Vec<Value> = odd
        .iter()
        .map(|name| role(name))
        .chain([map("beside", "1")])
        .collect();
    create_with(&world, "odd-1", json!({}), &objects).await?;
    world
        .until("odd-1", "Progressing", "True", "Succeeded", "")
        .await?;
    let names = async || {
        let list = roles.list(&ListParams::default()).await?;
        let names = list.items.into_iter().filter_map(|role| role.metadata.name);
        anyhow::Ok(names.filter(|name| odd.contains(&name.as_str())).count())
    };
    ensure!(
        names().await? == odd.len(),
        "{:#?}",
        roles.list(&ListParams::default()).await?
    );
    ensure!(world.maps().get_opt("beside").await?.is_some(), "in {NAMESPACE}");
    world.sets().delete("odd-1", &DeleteParams::default()).await?;
    world.gone("odd-1").await?;
    ensure!(names().await? == 0, "a role with an odd name is left");
    Ok(())
}
