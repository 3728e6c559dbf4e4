//! Group `single`: one extension at a time. Measures installations of a tiny extension and of one with a Deployment, drift,
//! an upgrade, and reconciles that change nothing.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use olm_api::{ClusterExtension, ClusterObjectSet};
use serde_json::json;

use crate::report::bench::Bench;
use crate::report::packages::{Kind, Package};
use crate::report::row::Measure;
use crate::report::stage::{name, namespace, pause, until};

/// Number of extensions that are installed one after the other.
const EXTENSIONS: u32 = 3;
const VERSIONS: [&str; 2] = ["1.0.0", "1.0.1"];
/// Pause between two changes of a revision.
const BETWEEN: Duration = Duration::from_millis(50);

/// Measures all rows about a single extension.
pub(super) async fn run(bench: &mut Bench) -> Result<()> {
    bench.idle().await?;
    bench.add_resident("idle", None)?;
    bench.add_program("idle", "operator-controller")?;
    let mut packages = Kind::Tiny.packages(1);
    packages.extend(Kind::Five.packages(EXTENSIONS));
    packages.push(Package {
        name: "edge".to_owned(),
        kind: Kind::Tiny,
        versions: &VERSIONS,
    });
    bench.stage.publish("single", &packages).await?;
    bench.stage.create_namespaces(EXTENSIONS).await?;
    for (kind, words) in [
        (Kind::Tiny, "extension"),
        (Kind::Five, "five-object extension with a Deployment"),
    ] {
        // During the first installation, the controller also discovers the kinds of the objects.
        for number in 0..EXTENSIONS {
            let before = bench.idle().await?;
            let time = bench.stage.install(kind, number..number + 1).await?;
            let usage = bench.idle_since(&before).await?.lasting(time);
            let work = format!("{words} {}, create to Installed", number + 1);
            bench.add_usage(&work, &usage, None).await?;
        }
    }
    drift(bench).await?;
    upgrade(bench).await?;
    reconciles(bench).await?;
    bench.stage.delete_all().await?;
    bench.stage.wait_for_no_pods().await?;
    bench.stage.world.delete("single").await
}

/// Measures the time until a deleted and a changed object of the first extension are restored.
async fn drift(bench: &mut Bench) -> Result<()> {
    let client = bench.stage.client.clone();
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace(0));
    let start = Instant::now();
    maps.delete("one", &DeleteParams::default()).await?;
    until("the deleted object is back", pause(1), async || {
        Ok(maps.get_opt("one").await?.is_some())
    })
    .await?;
    bench.add(
        "drift, deleted object back",
        Measure::Time,
        start.elapsed().as_secs_f64(),
    );
    bench.idle().await?;
    let start = Instant::now();
    let change = Patch::Merge(json!({"data": {"key": "changed"}}));
    maps.patch("one", &PatchParams::default(), &change).await?;
    until("the changed object is back", pause(1), async || {
        let data = maps.get("one").await?.data.unwrap_or_default();
        Ok(data.get("key").map(String::as_str) == Some("value"))
    })
    .await?;
    bench.add(
        "drift, changed object back",
        Measure::Time,
        start.elapsed().as_secs_f64(),
    );
    Ok(())
}

/// Installs the first version of a package, and measures the upgrade to the second one.
async fn upgrade(bench: &mut Bench) -> Result<()> {
    bench.stage.create_namespace("edge").await?;
    for version in VERSIONS {
        let before = bench.idle().await?;
        let catalog = json!({"packageName": "edge", "version": version});
        let is_done = |extension: &ClusterExtension| {
            let install = extension.status.iter().find_map(|status| status.install.as_ref());
            install.is_some_and(|install| install.bundle.version == version)
        };
        let time = bench.stage.install_one("edge", &catalog, is_done).await?;
        let usage = bench.idle_since(&before).await?.lasting(time);
        if version != VERSIONS[0] {
            bench.add_usage("upgrade along an edge", &usage, None).await?;
        }
    }
    Ok(())
}

/// Measures reconciles without changes. Each change of an annotation of a revision makes the controller reconcile the revision
/// and its extension.
async fn reconciles(bench: &mut Bench) -> Result<()> {
    let sets: Api<ClusterObjectSet> = Api::all(bench.stage.client.clone());
    let of = format!("{}-", name(Kind::Tiny, 1));
    let all = sets.list_metadata(&ListParams::default()).await?;
    let mut names = all.items.into_iter().filter_map(|set| set.metadata.name);
    // Another implementation may not have revisions.
    let Some(revision) = names.find(|name| name.starts_with(&of)) else {
        return Ok(());
    };
    let times = bench.scale.reconciles;
    ensure!(times > 0, "no reconcile is asked for");
    let before = bench.idle().await?;
    for number in 0..times {
        let patch = json!({"metadata": {"annotations": {"bench": number.to_string()}}});
        sets.patch(&revision, &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
        tokio::time::sleep(BETWEEN).await;
    }
    let usage = bench.idle_since(&before).await?;
    let work = format!("{times} reconciles of extension and revision without changes");
    if let Some(cpu) = usage.cpu {
        bench.add(&work, Measure::Processor, cpu.as_secs_f64());
        let each = cpu.as_secs_f64() * 1e3 / f64::from(times);
        bench.add(&work, Measure::ProcessorEach, each);
    }
    bench.add(&work, Measure::Requests, usage.requests.all.into());
    Ok(())
}
