//! Steps about the revisions (`ClusterObjectSet`s) of an extension.

use anyhow::Context as _;
use cucumber::then;
use kube::api::{Api, ListParams};
use olm_api::ClusterObjectSet;

use super::expect_condition;
use crate::world::OlmWorld;

#[then(regex = r#"^ClusterObjectSet "([^"]+)" is archived$"#)]
async fn archived(world: &mut OlmWorld, name: String) {
    report(world, &name, "Progressing", "False", "Archived").await;
}

#[then(regex = r#"^ClusterObjectSet "([^"]+)" reports (\w+) as (\w+) with Reason (\w+)$"#)]
async fn reports(world: &mut OlmWorld, name: String, type_: String, state: String, reason: String) {
    report(world, &name, &type_, &state, &reason).await;
}

#[then(regex = r"^ClusterExtension has (\d+) revisions?$")]
async fn revisions(world: &mut OlmWorld, count: usize) -> anyhow::Result<()> {
    let api: Api<ClusterObjectSet> = Api::all(world.cluster().client());
    let owner = format!("{}={}", olm_api::keys::OWNER_NAME_LABEL, world.name());
    let found = api.list(&ListParams::default().labels(&owner)).await?.items.len();
    anyhow::ensure!(found == count, "it has {found}");
    Ok(())
}

async fn report(world: &OlmWorld, name: &str, type_: &str, state: &str, reason: &str) {
    let reference = format!("clusterobjectset/{}", world.expand(name));
    world
        .eventually(&format!("{reference} to report {type_} as {state}"), async || {
            let object = world.cluster().get(&reference, "").await?.context("not there")?;
            expect_condition(&object.data["status"], type_, state, Some(reason), None)
        })
        .await;
}
