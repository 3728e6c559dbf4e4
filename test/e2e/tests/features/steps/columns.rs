//! Steps about the columns of `kubectl get`, as the API server prints them.

use anyhow::Context as _;
use cucumber::gherkin::Step;
use cucumber::then;
use kube::api::GetParams;
use kube::core::Request;
use reqwest::header::{ACCEPT, HeaderValue};
use serde_json::Value;

use crate::world::OlmWorld;

/// Type of a table, as kubectl asks for it.
const TABLE: HeaderValue = HeaderValue::from_static("application/json;as=Table;v=v1;g=meta.k8s.io");
/// Columns of upstream, in their order.
const UPSTREAM: [&str; 6] = [
    "Name",
    "Installed Bundle",
    "Version",
    "Installed",
    "Progressing",
    "Age",
];

async fn table(world: &OlmWorld) -> anyhow::Result<Value> {
    let path = "/apis/olm.operatorframework.io/v1/clusterextensions";
    let mut request = Request::new(path).get(&world.name(), &GetParams::default())?;
    request.headers_mut().insert(ACCEPT, TABLE);
    Ok(world.cluster().client().request(request).await?)
}

/// Compares the cells of the step's columns with those of the extension.
#[then("kubectl get shows, with -o wide:")]
async fn shows(world: &mut OlmWorld, step: &Step) -> anyhow::Result<()> {
    let rows = &step.table.as_ref().context("the step has no table")?.rows;
    let [titles, wanted] = rows.as_slice() else {
        anyhow::bail!("the table has a heading and one row");
    };
    let wanted: Vec<String> = wanted.iter().map(|cell| world.expand(cell)).collect();
    world
        .eventually(&format!("the columns {wanted:?}"), async || {
            let table = table(world).await?;
            let columns = table["columnDefinitions"].as_array().context("no columns")?;
            let names: Vec<&str> = columns
                .iter()
                .filter_map(|column| column["name"].as_str())
                .collect();
            anyhow::ensure!(names.starts_with(&UPSTREAM), "{names:?}");
            let wide = |name: &str| {
                columns
                    .iter()
                    .any(|column| column["name"] == name && column["priority"] == 1)
            };
            anyhow::ensure!(wide("Update") && wide("Catalog") && !wide("Ready"), "{columns:?}");
            let cells = table
                .pointer("/rows/0/cells")
                .and_then(Value::as_array)
                .context("no row")?;
            let cell = |title: &String| {
                let place = names.iter().position(|name| name == title)?;
                Some(cells.get(place)?.as_str().unwrap_or_default())
            };
            let found: Option<Vec<&str>> = titles.iter().map(cell).collect();
            anyhow::ensure!(found.is_some_and(|found| found == wanted), "{cells:?}");
            Ok(())
        })
        .await;
    Ok(())
}
