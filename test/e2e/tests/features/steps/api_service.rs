//! Steps about API services that a bundle's Deployment serves.

use anyhow::Context as _;
use cucumber::{then, when};
use olm_harness::AggregatedServer;
use serde_json::Value;

use crate::world::OlmWorld;

fn group(world: &OlmWorld) -> String {
    format!("served-{}.example.com", world.id)
}

#[when("the server of the API service answers")]
async fn serve(world: &mut OlmWorld) {
    let service = format!("test-operator-{}-service", world.id);
    let server = world
        .eventually("the Service and its certificate", async || {
            let client = world.environment.control_plane.client();
            AggregatedServer::start(
                &client,
                &world.namespace(),
                &service,
                [&group(world), "v1alpha1"],
                ["Tide", "tides"],
            )
            .await
        })
        .await;
    world.aggregated = Some(server);
}

#[then("clients find the kind of the API service and list its objects")]
async fn discovered(world: &mut OlmWorld) -> anyhow::Result<()> {
    let client = world.environment.control_plane.client();
    let (group, namespace) = (group(world), world.namespace());
    // At once: an extension that is rolled out can be used.
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let request = http::Request::get("/apis")
        .header("accept", accept)
        .body(Vec::new())?;
    let document: Value = client.request(request).await?;
    let found = document["items"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|item| item["metadata"]["name"] == group)
        .with_context(|| format!("{group} is not discovered"))?;
    let kind = &found["versions"][0]["resources"][0]["responseKind"]["kind"];
    anyhow::ensure!(kind == "Tide", "it has {found}");
    let path = format!("/apis/{group}/v1alpha1/namespaces/{namespace}/tides");
    let list: Value = client.request(http::Request::get(path).body(Vec::new())?).await?;
    anyhow::ensure!(list["kind"] == "TideList", "it is {list}");
    let server = world.aggregated.as_ref().context("no server answers")?;
    anyhow::ensure!(server.requests() > 0, "the API server asked nothing");
    Ok(())
}

#[then("the API server no longer knows the group of the API service")]
async fn unregistered(world: &mut OlmWorld) {
    let client = world.environment.control_plane.client();
    let path = format!("/apis/{}/v1alpha1", group(world));
    world
        .eventually("the group to be gone", async || {
            let request = http::Request::get(&path).body(Vec::new())?;
            match client.request::<Value>(request).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
                answer => anyhow::bail!("it answers {answer:?}"),
            }
        })
        .await;
}
