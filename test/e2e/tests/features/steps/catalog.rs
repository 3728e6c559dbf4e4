//! Setup steps: namespaces, catalogs and their images.

use anyhow::Context as _;
use cucumber::gherkin::Step;
use cucumber::{given, then, when};
use olm_e2e::content::{Keyword, Row};
use serde_json::json;

use crate::steps::condition;
use crate::world::OlmWorld;

#[given("OLM is available")]
#[given("an image registry is available")]
async fn environment(_: &mut OlmWorld) {
    // The world starts the environment before the first step.
}

#[given(regex = r#"^namespace "([^"]+)" is available$"#)]
#[when(regex = r#"^namespace "([^"]+)" is available$"#)]
async fn namespace(world: &mut OlmWorld, name: String) -> anyhow::Result<()> {
    let name = world.expand(&name);
    world
        .cluster()
        .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        .await
}

#[given(regex = r#"^a catalog "([^"]+)" with packages:$"#)]
async fn catalog(world: &mut OlmWorld, step: &Step, name: String) -> anyhow::Result<()> {
    let rows = rows(step)?;
    let reference = world.publish(&name, "v1", &rows).await?;
    world.versions.insert((name.clone(), "v1".to_owned()), rows);
    apply(world, &name, &reference).await?;
    serving(world, name, "v1".to_owned()).await;
    Ok(())
}

#[given(regex = r#"^catalog "([^"]+)" version "([^"]+)" with packages:$"#)]
async fn another_version(
    world: &mut OlmWorld,
    step: &Step,
    name: String,
    version: String,
) -> anyhow::Result<()> {
    world.versions.insert((name, version), rows(step)?);
    Ok(())
}

#[when(regex = r#"^catalog "([^"]+)" is updated to version "([^"]+)"$"#)]
async fn update(world: &mut OlmWorld, name: String, version: String) -> anyhow::Result<()> {
    let rows = world
        .versions
        .get(&(name.clone(), version.clone()))
        .context("no such version of the catalog")?
        .clone();
    let reference = world.publish(&name, &version, &rows).await?;
    apply(world, &name, &reference).await
}

#[then(regex = r#"^catalog "([^"]+)" is serving version "([^"]+)"$"#)]
async fn serving(world: &mut OlmWorld, name: String, version: String) {
    let cluster = world.cluster();
    let object = format!("clustercatalog/{}", world.catalog(&name));
    let digest = world
        .digests
        .get(&(name, version.clone()))
        .cloned()
        .expect("the catalog's image was pushed");
    world
        .eventually(&format!("{object} to serve {version}"), async || {
            let object = cluster.get(&object, "").await?.context("not there")?;
            let status = &object.data["status"];
            let serving = condition(status, "Serving").is_some_and(|found| found["status"] == "True");
            let reference = status["resolvedSource"]["image"]["ref"]
                .as_str()
                .unwrap_or_default();
            anyhow::ensure!(serving && reference.ends_with(&digest), "its status is {status}");
            Ok(())
        })
        .await;
}

#[when(regex = r#"^catalog "([^"]+)" is deleted$"#)]
async fn delete(world: &mut OlmWorld, name: String) -> anyhow::Result<()> {
    let cluster = world.cluster();
    let reference = format!("clustercatalog/{}", world.catalog(&name));
    let (api, object) = cluster.lookup(&reference, "").await?;
    api.delete(&object, &kube::api::DeleteParams::default()).await?;
    world
        .eventually(&format!("{reference} to be gone"), async || {
            anyhow::ensure!(cluster.get(&reference, "").await?.is_none(), "still there");
            Ok(())
        })
        .await;
    Ok(())
}

#[when(regex = r#"^the image of bundle "([^"]+)" version "([^"]+)" is pushed$"#)]
async fn push(world: &mut OlmWorld, package: String, version: String) -> anyhow::Result<()> {
    let row = world
        .versions
        .values()
        .flatten()
        .find(|row| row.package == package && row.version == version)
        .context("no row of a catalog is this bundle")?
        .clone();
    world.push_bundle(&row).await
}

async fn apply(world: &OlmWorld, name: &str, reference: &str) -> anyhow::Result<()> {
    world
        .cluster()
        .apply(&json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": world.catalog(name)},
            "spec": {"source": {"type": "Image", "image": {"ref": reference}}},
        }))
        .await
}

pub(super) fn rows(step: &Step) -> anyhow::Result<Vec<Row>> {
    let table = step.table.as_ref().context("the step has no table")?;
    let mut rows = Vec::new();
    for cells in table.rows.iter().skip(1) {
        let [package, version, channel, replaces, contents] = cells.as_slice() else {
            anyhow::bail!("a row has package, version, channel, replaces and contents: {cells:?}");
        };
        rows.push(Row {
            package: package.clone(),
            version: version.clone(),
            channel: channel.clone(),
            replaces: replaces.clone(),
            contents: Keyword::parse_list(contents)?,
        });
    }
    Ok(rows)
}
