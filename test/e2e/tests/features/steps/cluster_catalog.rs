//! Steps about the ClusterCatalog itself: its status, its served content, its remains.

use anyhow::Context as _;
use cucumber::gherkin::Step;
use cucumber::{given, then, when};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use olm_e2e::content;
use olm_harness::controllers::SYSTEM_NAMESPACE;
use olm_harness::{ImageBuilder, tls};
use serde_json::json;

use super::catalog::rows;
use super::expect_condition;
use crate::world::OlmWorld;

/// The tag that moves.
const MOVING: &str = "latest";
const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";

#[given(regex = r#"^catalog "([^"]+)" follows a tag, polled every minute, with packages:$"#)]
async fn polled(world: &mut OlmWorld, step: &Step, name: String) -> anyhow::Result<()> {
    let reference = world.publish(&name, MOVING, &rows(step)?).await?;
    let image = json!({"ref": reference, "pollIntervalMinutes": 1});
    apply(
        world,
        &name,
        &json!({"source": {"type": "Image", "image": image}}),
    )
    .await
}

#[when(regex = r#"^the tag of catalog "([^"]+)" moves to packages:$"#)]
async fn moves(world: &mut OlmWorld, step: &Step, name: String) -> anyhow::Result<()> {
    world.publish(&name, MOVING, &rows(step)?).await?;
    Ok(())
}

#[when(regex = r#"^catalog "([^"]+)" is set to (Available|Unavailable)$"#)]
async fn set_mode(world: &mut OlmWorld, name: String, mode: String) -> anyhow::Result<()> {
    let reference = format!("clustercatalog/{}", world.catalog(&name));
    world
        .cluster()
        .merge(&reference, "", &json!({"spec": {"availabilityMode": mode}}))
        .await
}

#[given(regex = r#"^catalog "([^"]+)" has an image whose file "([^"]+)" is not valid$"#)]
#[when(regex = r#"^catalog "([^"]+)" has an image whose file "([^"]+)" is not valid$"#)]
async fn broken(world: &mut OlmWorld, name: String, file: String) -> anyhow::Result<()> {
    let reference = push(world, &name, &file, "schema: [").await?;
    let image = json!({ "ref": reference });
    apply(
        world,
        &name,
        &json!({"source": {"type": "Image", "image": image}}),
    )
    .await
}

#[given(regex = r#"^catalog "([^"]+)" has an image that (.+)$"#)]
async fn hostile(world: &mut OlmWorld, name: String, what: String) -> anyhow::Result<()> {
    let registry = &world.environment.registry;
    let repository = format!("e2e/{}:{MOVING}", world.catalog(&name));
    ImageBuilder::new()
        .label(CONFIGS, "/configs")
        .raw_layer(
            content::hostile_layer(&what)?,
            format!("sha256:{}", "0".repeat(64)),
        )
        .push(registry, &repository)
        .await?;
    let image = json!({"ref": format!("{}/{repository}", registry.host())});
    apply(
        world,
        &name,
        &json!({"source": {"type": "Image", "image": image}}),
    )
    .await
}

#[then(regex = r#"^catalog "([^"]+)" is not served$"#)]
async fn not_served(world: &mut OlmWorld, name: String) -> anyhow::Result<()> {
    let (status, text) = read(world, &name, "all").await?;
    anyhow::ensure!(status == 404, "{status}: {text:?}");
    Ok(())
}

#[when(regex = r#"^the image of catalog "([^"]+)" is fixed with package "([^"]+)"$"#)]
async fn repair_image(world: &mut OlmWorld, name: String, package: String) -> anyhow::Result<()> {
    let package = world.expand(&package);
    let text = format!("schema: olm.package\nname: {package}\n");
    push(world, &name, "catalog.yaml", &text).await?;
    Ok(())
}

#[then(regex = r#"^catalog "([^"]+)" reports (\w+) as (\w+) with Reason (\w+)$"#)]
async fn says(world: &mut OlmWorld, name: String, type_: String, state: String, reason: String) {
    expect(world, &name, &type_, &state, &reason, None).await;
}

#[then(regex = r#"^catalog "([^"]+)" reports (\w+) as (\w+) with Reason (\w+) and Message includes:$"#)]
async fn says_with_message(
    world: &mut OlmWorld,
    step: &Step,
    name: String,
    type_: String,
    state: String,
    reason: String,
) {
    let text = world.expand(step.docstring.as_deref().unwrap_or_default().trim());
    expect(world, &name, &type_, &state, &reason, Some(&text)).await;
}

#[then(regex = r#"^catalog "([^"]+)" serves package "([^"]+)"$"#)]
async fn serves(world: &mut OlmWorld, name: String, package: String) {
    let package = world.expand(&package);
    let query = format!("metas?schema=olm.package&name={package}");
    let line = format!("\"name\":\"{package}\"");
    world
        .eventually(&format!("catalog {name} to serve {package}"), async || {
            let (status, text) = read(world, &name, &query).await?;
            anyhow::ensure!(status == 200 && text.contains(&line), "{status}: {text:?}");
            Ok(())
        })
        .await;
}

#[then(regex = r#"^catalog "([^"]+)" is neither served nor on disk$"#)]
async fn nothing(world: &mut OlmWorld, name: String) {
    let own = world.catalog(&name);
    let cache = &world.environment.catalogd_cache;
    world
        .eventually(&format!("nothing of catalog {name}"), async || {
            let (status, text) = read(world, &name, "all").await?;
            anyhow::ensure!(status == 404, "{status}: {text:?}");
            for folder in ["catalogs", "unpack"] {
                let path = cache.join(folder).join(&own);
                anyhow::ensure!(!path.exists(), "{} is there", path.display());
            }
            Ok(())
        })
        .await;
}

#[then(regex = r#"^catalog "([^"]+)" (has|does not have) the finalizer for its content$"#)]
async fn has_finalizer(world: &mut OlmWorld, name: String, has: String) {
    let reference = format!("clustercatalog/{}", world.catalog(&name));
    world
        .eventually(&format!("the finalizers of {reference}"), async || {
            let object = world
                .cluster()
                .get(&reference, "")
                .await?
                .context("it is not there")?;
            let finalizers = object.metadata.finalizers.unwrap_or_default();
            let found = finalizers
                .iter()
                .any(|own| own == "olm.operatorframework.io/delete-server-cache");
            anyhow::ensure!(found == (has == "has"), "they are {finalizers:?}");
            Ok(())
        })
        .await;
}

#[then(regex = r#"^an event of catalog "([^"]+)" has reason "(\w+)"$"#)]
async fn event(world: &mut OlmWorld, name: String, reason: String) {
    let own = world.catalog(&name);
    let events: Api<Event> = Api::all(world.cluster().client());
    let params = ListParams::default().fields(&format!("regarding.name={own}"));
    world
        .eventually(&format!("an event {reason} of {own}"), async || {
            let found = events.list(&params).await?;
            let reasons: Vec<_> = found.iter().filter_map(|event| event.reason.clone()).collect();
            anyhow::ensure!(reasons.contains(&reason), "there are {reasons:?}");
            Ok(())
        })
        .await;
}

async fn expect(world: &OlmWorld, name: &str, type_: &str, state: &str, reason: &str, message: Option<&str>) {
    let reference = format!("clustercatalog/{}", world.catalog(name));
    world
        .eventually(&format!("{reference} to report {type_}"), async || {
            let object = world
                .cluster()
                .get(&reference, "")
                .await?
                .context("it is not there")?;
            expect_condition(&object.data["status"], type_, state, Some(reason), message)
        })
        .await;
}

async fn apply(world: &OlmWorld, name: &str, spec: &serde_json::Value) -> anyhow::Result<()> {
    world
        .cluster()
        .apply(&json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": world.catalog(name)}, "spec": spec,
        }))
        .await
}

/// Pushes a catalog of one file to the tag that moves.
async fn push(world: &OlmWorld, name: &str, file: &str, text: &str) -> anyhow::Result<String> {
    let registry = &world.environment.registry;
    let repository = format!("e2e/{}:{MOVING}", world.catalog(name));
    ImageBuilder::new()
        .label(CONFIGS, "/configs")
        .file(format!("configs/{file}"), text.as_bytes().to_vec())
        .push(registry, &repository)
        .await?;
    Ok(format!("{}/{repository}", registry.host()))
}

/// Returns the CA in catalogd's Secret.
pub(super) async fn authority(world: &OlmWorld) -> anyhow::Result<String> {
    let secrets = Api::<Secret>::namespaced(world.cluster().client(), SYSTEM_NAMESPACE);
    let data = secrets
        .get("catalogd-service-own-cert")
        .await?
        .data
        .unwrap_or_default();
    let ca = data.get("ca.crt").context("the Secret has no ca.crt")?;
    Ok(std::str::from_utf8(&ca.0)?.to_owned())
}

/// Requests catalogd; returns status and body.
async fn read(world: &OlmWorld, name: &str, query: &str) -> anyhow::Result<(u16, String)> {
    let client = tls::http_client(Some(&authority(world).await?))?;
    let base = &world.environment.catalogd_url;
    let url = format!("{base}/catalogs/{}/api/v1/{query}", world.catalog(name));
    let answer = client.get(url).send().await?;
    Ok((answer.status().as_u16(), answer.text().await?))
}
