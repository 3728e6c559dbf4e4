//! Steps about `spec.rollout`: pending plans, their approval, and windows.

use std::time::Duration;

use anyhow::Context as _;
use cucumber::{then, when};
use k8s_openapi::jiff::{SignedDuration, Timestamp, tz::TimeZone};
use kube::api::{Api, ListParams, Patch, PatchParams};
use olm_api::{ClusterExtension, PendingPlan};
use olm_harness::eventually;
use serde_json::json;

use crate::world::OlmWorld;

/// Field manager of approvals.
const APPROVER: &str = "the-approver";
/// Longest time until a window opens, and the upgrade in it.
const WINDOW_TIMEOUT: Duration = Duration::from_mins(4);

fn extensions(world: &OlmWorld) -> Api<ClusterExtension> {
    Api::all(world.cluster().client())
}

async fn pending(world: &OlmWorld) -> anyhow::Result<PendingPlan> {
    let status = extensions(world).get(&world.name()).await?.status;
    status
        .and_then(|status| status.pending_plan)
        .context("no plan is pending")
}

async fn approve(world: &OlmWorld, digest: &str) -> anyhow::Result<()> {
    let params = PatchParams {
        field_manager: Some(APPROVER.to_owned()),
        ..PatchParams::default()
    };
    let patch = json!({"spec": {"rollout": {"approvedPlan": digest}}});
    extensions(world)
        .patch(&world.name(), &params, &Patch::Merge(patch))
        .await?;
    Ok(())
}

/// The digest is remembered for the step that approves an earlier plan.
#[then(regex = r#"^the pending plan is for bundle "([^"]+)"$"#)]
async fn plan_of(world: &mut OlmWorld, bundle: String) {
    let bundle = world.expand(&bundle);
    let digest = world
        .eventually(&format!("a pending plan for {bundle}"), async || {
            let plan = pending(world).await?;
            anyhow::ensure!(plan.bundle.name == bundle, "it is {plan:?}");
            anyhow::ensure!(plan.digest.len() == 71, "{}", plan.digest);
            Ok(plan.digest)
        })
        .await;
    world.plans.push(digest);
}

#[when("the pending plan is approved")]
async fn approve_last(world: &mut OlmWorld) -> anyhow::Result<()> {
    let digest = world.plans.last().context("no plan was seen")?;
    approve(world, digest).await
}

#[when("the plan before the pending one is approved")]
async fn approve_earlier(world: &mut OlmWorld) -> anyhow::Result<()> {
    let earlier = world
        .plans
        .iter()
        .rev()
        .nth(1)
        .context("only one plan was seen")?;
    anyhow::ensure!(world.plans.last() != Some(earlier), "the plans have one digest");
    approve(world, earlier).await
}

#[then("no plan is pending")]
async fn none_pending(world: &mut OlmWorld) {
    world
        .eventually("no plan to be pending", async || {
            anyhow::ensure!(pending(world).await.is_err(), "a plan is pending");
            Ok(())
        })
        .await;
}

#[then("an event names the field manager of the approval")]
async fn approver(world: &mut OlmWorld) {
    let api: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(world.cluster().client(), "default");
    let params = ListParams::default().fields(&format!("regarding.name={},reason=Approved", world.name()));
    let wanted = format!("field manager \"{APPROVER}\"");
    world
        .eventually("the event of the approval", async || {
            let found = api.list(&params).await?.items;
            let mut notes = found.iter().filter_map(|event| event.note.as_deref());
            anyhow::ensure!(notes.any(|note| note.contains(&wanted)), "{found:?}");
            Ok(())
        })
        .await;
}

/// Sets a window of two minutes, an hour apart, that is closed now and opens within two minutes.
#[when("upgrades are limited to a window that opens within two minutes")]
async fn soon(world: &mut OlmWorld) -> anyhow::Result<()> {
    let opens = Timestamp::now() + SignedDuration::from_secs(70);
    let minute = opens.to_zoned(TimeZone::UTC).minute();
    let windows = json!([{"schedule": format!("{minute} * * * *"), "durationMinutes": 2}]);
    let patch = json!({"spec": {"rollout": {"windows": windows}}});
    let (api, name) = (extensions(world), world.name());
    api.patch(&name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    world
        .eventually("the window to be closed", async || {
            let rollout = api.get(&name).await?.status.and_then(|status| status.rollout);
            let rollout = rollout.context("no windows in the status")?;
            anyhow::ensure!(
                rollout.opens_at.is_some_and(|at| at.0 > Timestamp::now()),
                "no opening"
            );
            Ok(())
        })
        .await;
    Ok(())
}

#[then(regex = r#"^version "([^"]+)" is installed once the window opens$"#)]
async fn in_time(world: &mut OlmWorld, version: String) -> anyhow::Result<()> {
    let (api, name) = (extensions(world), world.name());
    let opens = api
        .get(&name)
        .await?
        .status
        .and_then(|status| status.rollout?.opens_at);
    let opens = opens.context("the window is open already")?.0;
    eventually(WINDOW_TIMEOUT, "the upgrade", async || {
        let status = api.get(&name).await?.status.unwrap_or_default();
        let installed = status
            .install
            .is_some_and(|install| install.bundle.version == version);
        anyhow::ensure!(installed, "{:?}", status.rollout);
        Ok(())
    })
    .await?;
    anyhow::ensure!(Timestamp::now() >= opens, "upgraded before {opens}");
    Ok(())
}
