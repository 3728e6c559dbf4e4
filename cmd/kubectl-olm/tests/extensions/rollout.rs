//! `approve`, `pause` and `resume` on a real extension.

use anyhow::{Context as _, Result, ensure};
use kube::Api;
use kube::api::{Patch, PatchParams};
use olm_api::ClusterExtension;
use olm_harness::eventually;
use serde_json::{Value, json};

use super::{PATIENCE, World};

async fn set_rollout(world: &World, rollout: &Value) -> Result<()> {
    let api: Api<ClusterExtension> = Api::all(world.client.clone());
    let patch = json!({"spec": {"rollout": rollout}});
    api.patch("kite", &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

async fn state(world: &World) -> Result<String> {
    let got = world.value(&["get"]).await?;
    let state = got["extensions"][0]["state"].as_str();
    Ok(state.with_context(|| got.to_string())?.to_owned())
}

/// Pauses the extension and resumes it; a dry run and a repetition write nothing.
pub(super) async fn pauses_and_resumes(world: &World) -> Result<()> {
    let dry = world.says(&["pause", "kite", "--dry-run"]).await?;
    assert_eq!(dry.code, 0, "{dry}");
    ensure!(
        dry.out == "clusterextension/kite: paused (dry run: nothing is written)\n",
        "{dry}"
    );
    let patch = world.says(&["pause", "kite", "-o", "yaml"]).await?;
    assert_eq!(patch.code, 0, "{patch}");
    ensure!(patch.out.contains("paused: true"), "{patch}");
    eventually(PATIENCE, "the pause is shown", async || {
        let state = state(world).await?;
        ensure!(state == "Paused", "{state}");
        Ok(())
    })
    .await?;
    let status = world.says(&["status", "kite"]).await?;
    assert_eq!(status.code, 1, "{status}");
    ensure!(
        status.out.contains("Resume with: kubectl olm resume kite"),
        "{status}"
    );
    let again = world.says(&["pause", "kite"]).await?;
    ensure!(
        again.out == "clusterextension/kite: paused already; nothing is written\n",
        "{again}"
    );
    let resumed = world.says(&["resume", "kite"]).await?;
    ensure!(
        resumed.code == 0 && resumed.out == "clusterextension/kite: not paused\n",
        "{resumed}"
    );
    world.ready("1.0.0").await?;
    let missing = world.says(&["pause", "nobody"]).await?;
    assert_eq!(missing.code, 1, "{missing}");
    Ok(())
}

/// Approves by `plan --approve`, after it was refused without a terminal.
async fn approves_what_it_shows(world: &World, digest: &str) -> Result<()> {
    let host = world.registry.host();
    let plan = async |args: &[&str]| {
        let common = [
            "plan",
            "kite",
            "--approve",
            "--plain-http-registry",
            host.as_str(),
        ];
        world.says(&[&common[..], args].concat()).await
    };
    let other = plan(&["--to", "1.1.0", "--yes"]).await?;
    ensure!(
        other.code == 2 && other.err.contains("cannot be used with"),
        "{other}"
    );
    let unasked = plan(&[]).await?;
    ensure!(
        unasked.code == 2
            && unasked.err.contains("there is no terminal to ask on")
            && unasked.err.contains(digest),
        "{unasked}"
    );
    let approved = plan(&["--yes"]).await?;
    ensure!(
        approved.code == 0
            && approved.out.contains(digest)
            && approved
                .out
                .ends_with("clusterextension/kite: version 1.1.0 is approved\n"),
        "{approved}"
    );
    let api: Api<ClusterExtension> = Api::all(world.client.clone());
    let rollout = api.get("kite").await?.spec.rollout;
    ensure!(
        rollout.and_then(|rollout| rollout.approved_plan).as_deref() == Some(digest),
        "the digest is not in the spec"
    );
    Ok(())
}

/// Approves the upgrade to 1.1.0 by the digest of its plan. The account has the rights for it.
pub(super) async fn approves_an_upgrade(world: &World) -> Result<()> {
    set_rollout(world, &json!({"approval": "Manual"})).await?;
    let none = world.says(&["approve", "kite"]).await?;
    assert_eq!(none.code, 1, "{none}");
    ensure!(none.err.contains("no plan that waits for approval"), "{none}");
    let host = world.registry.host();
    let nothing = [
        "plan",
        "kite",
        "--approve",
        "--yes",
        "--plain-http-registry",
        &host,
    ];
    let nothing = world.says(&nothing).await?;
    ensure!(
        nothing.code == 0 && nothing.out.contains("nothing to do"),
        "{nothing}"
    );
    world.apply("1.1.0").await?;
    let api: Api<ClusterExtension> = Api::all(world.client.clone());
    let digest = eventually(PATIENCE, "a plan waits", async || {
        let status = api.get("kite").await?.status.unwrap_or_default();
        let plan = status
            .pending_plan
            .with_context(|| format!("{:?}", status.conditions))?;
        ensure!(plan.bundle.version == "1.1.0", "{plan:?}");
        Ok(plan.digest)
    })
    .await?;
    let planned = world
        .says(&[
            "plan",
            "kite",
            "-o",
            "json",
            "--plain-http-registry",
            &world.registry.host(),
        ])
        .await?;
    let plan: Value = serde_json::from_str(&planned.out)?;
    ensure!(
        plan["digest"] == digest,
        "the controller's plan is {digest}: {planned}"
    );
    let other = format!("sha256:{}", "0".repeat(64));
    let wrong = world.says(&["approve", "kite", "--digest", &other]).await?;
    assert_eq!(wrong.code, 1, "{wrong}");
    let usage = world.says(&["approve", "kite", "--digest", "latest"]).await?;
    assert_eq!(usage.code, 2, "{usage}");
    let dry = world.says(&["approve", "kite", "--dry-run"]).await?;
    ensure!(dry.code == 0 && dry.out.contains(&digest), "{dry}");
    let rollout = api.get("kite").await?.spec.rollout;
    ensure!(
        rollout.is_some_and(|rollout| rollout.approved_plan.is_none()),
        "a dry run wrote"
    );

    let patch = ["approve", "kite", "--digest", &digest, "--dry-run"];
    let patch = world.value(&patch).await?;
    ensure!(patch["spec"]["rollout"]["approvedPlan"] == digest, "{patch}");
    approves_what_it_shows(world, &digest).await?;
    world.ready("1.1.0").await?;
    eventually(PATIENCE, "the approval is told", async || {
        let events = world.says(&["events", "kite"]).await?;
        ensure!(
            events.out.contains("Approved") && events.out.contains("field manager \"kubectl-olm\""),
            "{events}"
        );
        Ok(())
    })
    .await?;
    set_rollout(world, &Value::Null).await
}
