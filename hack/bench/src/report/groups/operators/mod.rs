//! Real operators, or one that is made up, beside a bare client that writes the same objects: the API server's own limit.

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

/// Name of the only bundle of a package, and its version: catalogs tell the version, whatever the bundle's own is.
const VERSION: &str = "1.0.0";

/// An operator whose objects its revision has told.
struct Installed {
    name: String,
    phases: Vec<Vec<Value>>,
}

/// Measures the installation of each operator by the controllers, and then of the same objects by a bare client. Without folders of
/// bundles an operator is made up.
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
    // No controller watches what the bare client writes.
    bench.subject.stop();
    let client = bench.stage.world.plane.client();
    for Installed { name, phases } in &all {
        let (time, requests) = bare::install(&client, phases)
            .await
            .with_context(|| format!("the bare client cannot install {name}"))?;
        let work = format!("the same objects of {name} written by a bare client");
        bench.add(&work, Measure::Time, time.as_secs_f64());
        bench.add(&work, Measure::Requests, requests.into());
        bare::delete(&client, phases).await?;
    }
    bench.stage.wait_for_no_pods().await
}

/// Installs an operator and deletes it. `None` if the implementation has no revisions: nothing says which objects belong to it.
async fn install(bench: &mut Bench, folder: &Path) -> Result<Option<Installed>> {
    let name = &name_of(folder);
    publish(bench, name, folder).await?;
    bench.stage.create_namespace(name).await?;
    let before = bench.idle().await?;
    let catalog = json!({"packageName": name});
    let time = bench.stage.install_one(name, &catalog, is_installed).await?;
    let usage = bench.idle_since(&before).await?.lasting(time);
    bench.add_usage(&format!("{name}, create to Installed"), &usage, None);
    let client = bench.stage.world.plane.client();
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

/// Pushes the bundle and a catalog of it, and waits until the catalog is served.
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
