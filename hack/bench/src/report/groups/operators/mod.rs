//! Group `operators`: the controllers install real operators, or a synthetic one. For comparison, a bare client writes the same
//! objects, which shows the limit of the API server itself.

mod bare;
mod made_up;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kube::Api;
use kube::api::ListParams;
use olm_api::ClusterObjectSet;
use serde_json::{Value, json};

use crate::report::bench::Bench;
use crate::report::packages::{channel, package_meta, push_metas};
use crate::report::row::Measure;
use crate::report::stage::{is_installed, name_of};

/// Version of the only bundle of each package. The catalog gives every bundle this version, whatever the bundle itself says.
const VERSION: &str = "1.0.0";

/// An operator with its objects by phase, as its revision lists them.
struct Installed {
    name: String,
    phases: Vec<Vec<Value>>,
}

/// Measures the installation of each operator by the controllers, and then of the same objects by a bare client. Without folders
/// of bundles, a synthetic operator is used.
pub(super) async fn run(bench: &mut Bench, folders: &[PathBuf]) -> Result<()> {
    let work = tempfile::tempdir()?;
    let made_up = vec![work.path().join("operator/made-up")];
    let folders = if folders.is_empty() {
        made_up::write(&made_up[0], bench.scale.crds, bench.scale.crd_bytes)?;
        &made_up
    } else {
        folders
    };
    let mut all = Vec::new();
    for folder in folders {
        all.extend(install(bench, folder).await?);
    }
    // No controller watches the objects that the bare client writes.
    bench.subject.stop();
    let client = bench.stage.client.clone();
    for Installed { name, phases } in &all {
        let before = bench.plane()?;
        let (time, requests) = bare::install(&client, phases)
            .await
            .with_context(|| format!("the bare client cannot install {name}"))?;
        let work = format!("the same objects of {name} written by a bare client");
        bench.add(&work, Measure::Time, time.as_secs_f64());
        bench.add(&work, Measure::Requests, requests.into());
        let used = bench.plane()?.since(before);
        bench.add_plane(&work, used, None).await?;
        bare::delete(&client, phases).await?;
    }
    bench.stage.wait_for_no_pods().await
}

/// Measures the installation of an operator and deletes it. Returns `None` if the implementation has no revisions, because the
/// objects of the operator are unknown then.
async fn install(bench: &mut Bench, folder: &Path) -> Result<Option<Installed>> {
    let name = &name_of(folder);
    publish(bench, name, folder).await?;
    bench.stage.create_namespace(name).await?;
    let before = bench.idle().await?;
    let catalog = json!({"packageName": name});
    let time = bench.stage.install_one(name, &catalog, is_installed).await?;
    let usage = bench.idle_since(&before).await?.lasting(time);
    bench
        .add_usage(&format!("{name}, create to Installed"), &usage, None)
        .await?;
    let client = bench.stage.client.clone();
    let sets: Api<ClusterObjectSet> = Api::all(client.clone());
    let sets = sets.list(&ListParams::default()).await?;
    let installed = match sets.items.first() {
        Some(set) => Some(Installed {
            name: name.clone(),
            phases: bare::phases(&client, set).await?,
        }),
        None => None,
    };
    bench.stage.delete_all().await?;
    bench.stage.world.delete(name).await?;
    Ok(installed)
}

/// Pushes the bundle and a catalog with it, and waits until the catalog is served.
async fn publish(bench: &Bench, name: &str, folder: &Path) -> Result<()> {
    let registry = &bench.stage.world.registry;
    olm_harness::bundle_image_from_dir(folder)?
        .push(registry, &format!("bench/{name}:{VERSION}"))
        .await?;
    let metas = [
        package_meta(name),
        channel(name, &[json!({"name": name})]),
        json!({"schema": "olm.bundle", "package": name, "name": name,
            "image": format!("{}/bench/{name}:{VERSION}", registry.host()),
            "properties": [{"type": "olm.package", "value": {"packageName": name, "version": VERSION}}]}),
    ];
    let image = push_metas(registry, &metas, &format!("bench/catalog-{name}:1")).await?;
    bench.stage.world.apply(name, &image, None).await?;
    bench.stage.world.serving(name, &image).await
}
