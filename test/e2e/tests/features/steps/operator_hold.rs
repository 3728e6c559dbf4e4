//! Steps about operators that hold their upgrades.

use anyhow::Context as _;
use cucumber::{given, when};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::world::OlmWorld;

#[given("the kind OperatorCondition is available")]
async fn kind(world: &mut OlmWorld) -> anyhow::Result<()> {
    let cluster = world.cluster();
    cluster
        .apply_file("test/testdata/operator-condition/crd.yaml", &[])
        .await?;
    world
        .eventually("the kind OperatorCondition to be served", async || {
            cluster.lookup("operatorcondition/any", "default").await?;
            Ok(())
        })
        .await;
    Ok(())
}

/// Writes the status as an operator does, besides the conditions of Kubernetes' own controller.
#[when(regex = r#"^deployment "([^"]+)" has condition Upgradeable as (True|False)$"#)]
async fn says(world: &mut OlmWorld, name: String, status: String) -> anyhow::Result<()> {
    let name = world.expand(&name);
    let (api, name) = world
        .cluster()
        .lookup(&format!("deployment/{name}"), &world.namespace())
        .await?;
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": world.namespace()},
        "status": {"conditions": [{"type": "Upgradeable", "status": status, "reason": "Busy",
            "message": "The operator is busy.", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    let params = PatchParams::apply("the-operator").force();
    api.patch_status(&name, &params, &Patch::Apply(&object))
        .await
        .context("writing the condition")?;
    Ok(())
}
