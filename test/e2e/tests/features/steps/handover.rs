//! Steps about an extension's objects between two points in time: which were deleted, which stayed the same.

use std::collections::BTreeSet;

use anyhow::Context as _;
use cucumber::{then, when};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, ListParams, WatchParams};
use kube::core::WatchEvent;

use crate::world::{ObjectSnapshot, OlmWorld};

/// Duration of the replay of past events by the API server.
const REPLAY_SECONDS: u32 = 2;

fn selector(world: &OlmWorld) -> String {
    format!("{}={}", olm_api::keys::OWNER_NAME_LABEL, world.name())
}

/// Returns `kind/name` in lower case, the references in steps.
fn reference(kind: &str, meta: &ObjectMeta) -> String {
    let name = meta.name.as_deref().unwrap_or_default();
    format!("{}/{name}", kind.to_lowercase())
}

#[when("the objects of ClusterExtension are recorded")]
async fn note(world: &mut OlmWorld) -> anyhow::Result<()> {
    let params = ListParams::default().labels(&selector(world));
    world.snapshots.clear();
    for kind in world.cluster().listable().await? {
        let api: Api<DynamicObject> = Api::all_with(world.cluster().client(), &kind);
        let list = match api.list_metadata(&params).await {
            // A kind of another scenario may vanish in the meantime.
            Err(kube::Error::Api(status)) if status.code == 404 || status.code == 405 => continue,
            list => list?,
        };
        if list.items.is_empty() {
            continue;
        }
        let objects = list
            .items
            .iter()
            .map(|object| {
                let uid = object.metadata.uid.clone().unwrap_or_default();
                (reference(&kind.kind, &object.metadata), uid)
            })
            .collect();
        world.snapshots.push(ObjectSnapshot {
            kind,
            version: list.metadata.resource_version.unwrap_or_default(),
            objects,
        });
    }
    anyhow::ensure!(!world.snapshots.is_empty(), "it has no objects");
    Ok(())
}

/// Returns the objects of noted kinds that were deleted since, from the API server's watch events.
async fn deleted(world: &OlmWorld) -> anyhow::Result<BTreeSet<String>> {
    let params = WatchParams::default()
        .labels(&selector(world))
        .timeout(REPLAY_SECONDS);
    let watches = world.snapshots.iter().map(async |snapshot| {
        let api: Api<DynamicObject> = Api::all_with(world.cluster().client(), &snapshot.kind);
        let events: Vec<_> = api
            .watch_metadata(&params, &snapshot.version)
            .await?
            .try_collect()
            .await?;
        let mut names = BTreeSet::new();
        for event in events {
            match event {
                WatchEvent::Deleted(object) => {
                    names.insert(reference(&snapshot.kind.kind, &object.metadata));
                }
                WatchEvent::Error(status) => anyhow::bail!("the watch of {}: {status:?}", snapshot.kind.kind),
                _ => {}
            }
        }
        Ok(names)
    });
    let found: Vec<_> = futures::stream::iter(watches)
        .buffer_unordered(16)
        .collect()
        .await;
    let mut all = BTreeSet::new();
    for names in found {
        all.extend(names?);
    }
    Ok(all)
}

#[then(regex = r"^none of the recorded objects was deleted$")]
async fn none_deleted(world: &mut OlmWorld) -> anyhow::Result<()> {
    only_deleted(world, String::new()).await
}

/// Checks the deleted objects, and that all other noted objects exist with the same uid.
#[then(regex = r#"^none of the recorded objects was deleted except "([^"]+)"$"#)]
async fn only_deleted(world: &mut OlmWorld, names: String) -> anyhow::Result<()> {
    let names = world.expand(&names);
    let allowed: BTreeSet<String> = names
        .split(',')
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    let found = deleted(world).await?;
    anyhow::ensure!(found == allowed, "deleted were {found:?}, not {allowed:?}");
    for snapshot in &world.snapshots {
        let api: Api<DynamicObject> = Api::all_with(world.cluster().client(), &snapshot.kind);
        let now = api
            .list_metadata(&ListParams::default().labels(&selector(world)))
            .await?;
        for (name, uid) in snapshot
            .objects
            .iter()
            .filter(|(name, _)| !allowed.contains(name))
        {
            let found = now
                .items
                .iter()
                .find(|object| reference(&snapshot.kind.kind, &object.metadata) == *name);
            let found = found.with_context(|| format!("{name} is not there any more"))?;
            anyhow::ensure!(found.metadata.uid.as_ref() == Some(uid), "{name} was made anew");
        }
    }
    Ok(())
}

#[then(regex = r#"^(\d+) objects of kind "([^"]+)" are labeled for ClusterExtension$"#)]
async fn labeled(world: &mut OlmWorld, count: usize, kind: String) {
    let params = ListParams::default().labels(&selector(world));
    world
        .eventually(&format!("{count} objects of kind {kind}"), async || {
            let (api, _) = world
                .cluster()
                .lookup(&format!("{kind}/x"), &world.namespace())
                .await?;
            let found = api.list_metadata(&params).await?.items.len();
            anyhow::ensure!(found == count, "there are {found}");
            Ok(())
        })
        .await;
}
