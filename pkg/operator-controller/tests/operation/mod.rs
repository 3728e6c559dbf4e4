//! Tests of what a cluster administrator relies on: `kubectl wait`, a restart that writes nothing, and the steps of
//! `docs/deleting.md` for a cluster without operator-controller.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt as _};
use olm_api::{ClusterExtension, ClusterObjectSet, keys};
use olm_harness::eventually;
use serde_json::json;
use tokio::process::Command;

use super::{LIMIT, PACKAGE, World};

/// Time limit of a command of the documentation.
const COMMAND_LIMIT: Duration = Duration::from_secs(100);
/// Names of the extensions, which are enough to see what a restart writes.
const EXTENSIONS: [&str; 4] = ["left", "kept", "third", "fourth"];
/// Time without a write after which the controller counts as idle.
const QUIET: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_restarts_and_the_way_out() -> Result<()> {
    let Some(kubectl) = kubectl() else {
        writeln!(
            std::io::stderr(),
            "SKIPPED: no kubectl on the PATH, so the commands of the documentation were not run"
        )?;
        return Ok(());
    };
    let mut world = World::start().await?;
    world.roles = false;
    world
        .publish("catalog:v1", &[("1.0.0", ""), ("1.0.1", "1.0.0")])
        .await?;
    world.apply_catalog("catalog:v1").await?;
    let shell = Shell {
        kubeconfig: world.plane.kubeconfig().to_owned(),
        path: kubectl,
    };
    kubectl_waits(&world, &shell).await?;
    a_restart_writes_nothing(&world).await?;
    // From here on nobody reconciles.
    world.controller.lock().await.controller().stop();
    lets_go_of_all(&world, &shell).await?;
    keeps_all(&world, &shell).await
}

/// The folder of `kubectl`.
fn kubectl() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find(|folder| folder.join("kubectl").is_file())
}

/// Runs what stands in the documentation.
struct Shell {
    kubeconfig: PathBuf,
    path: PathBuf,
}

impl Shell {
    async fn run(&self, script: &str) -> Result<String> {
        let path = std::env::var("PATH").unwrap_or_default();
        let child = Command::new("bash")
            .args(["-eu", "-o", "pipefail", "-c", script])
            .env("KUBECONFIG", &self.kubeconfig)
            .env("PATH", format!("{}:{path}", self.path.display()))
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(COMMAND_LIMIT, child)
            .await
            .with_context(|| format!("it does not end: {script}"))??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ensure!(
            output.status.success(),
            "{script}\n{}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        Ok(text(&output.stdout))
    }
}

/// The first block of commands below a heading of a document, for the extension `name`.
fn commands(document: &str, heading: &str, name: &str) -> Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(document);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (_, below) = text
        .split_once(&format!("\n{heading}\n"))
        .with_context(|| format!("{document} has no {heading:?}"))?;
    let (_, block) = below.split_once("```sh\n").context("no commands below it")?;
    let (block, _) = block.split_once("```").context("the commands do not end")?;
    Ok(block.replace("NAME", name))
}

/// Install, upgrade, failure: as `docs/status.md` has it.
async fn kubectl_waits(world: &World, shell: &Shell) -> Result<()> {
    let ready = "kubectl wait clusterextension/first --for=condition=Ready --timeout=90s";
    let version = "kubectl get clusterextension/first -o jsonpath='{.status.install.bundle.version}'";
    let spec = |version: &str| json!({"packageName": PACKAGE, "version": version});
    world.create_namespace("first").await?;
    world.apply_extension("first", "first", spec("1.0.0")).await?;
    let state = async |error: anyhow::Error| {
        let api: Api<ClusterExtension> = Api::all(world.client.clone());
        let status = api.get("first").await.map(|extension| extension.status);
        error.context(format!("{status:#?}"))
    };
    if let Err(error) = shell.run(ready).await {
        return Err(state(error).await);
    }
    ensure!(shell.run(version).await? == "1.0.0");
    // Asked at once after the change: the answer of before does not count.
    world.apply_extension("first", "first", spec("1.0.1")).await?;
    if let Err(error) = shell.run(ready).await {
        return Err(state(error).await);
    }
    ensure!(shell.run(version).await? == "1.0.1");
    let nonsense = json!({"spec": {"config": {"configType": "Inline", "inline": {"nonsense": true}}}});
    world.patch("first", &nonsense).await?;
    let stalled = "kubectl wait clusterextension/first --for=condition=Stalled --timeout=90s";
    shell.run(stalled).await?;
    let denied = shell
        .run("kubectl wait clusterextension/first --for=condition=Ready --timeout=1s")
        .await;
    ensure!(denied.is_err(), "it is taken for ready: {denied:?}");
    world.delete("first").await
}

/// Returns the resource versions of the objects that operator-controller writes, by `kind/name`.
async fn versions(world: &World) -> Result<BTreeMap<String, String>> {
    let ours = ListParams::default().labels(keys::OWNER_NAME_LABEL);
    let mut versions = BTreeMap::new();
    let mut note = |kind: &str, meta: &kube::core::ObjectMeta| {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let name = format!("{kind} {}/{}", text(&meta.namespace), text(&meta.name));
        versions.insert(name, text(&meta.resource_version));
    };
    for item in Api::<ClusterExtension>::all(world.client.clone())
        .list(&ListParams::default())
        .await?
    {
        note("ClusterExtension", &item.metadata);
    }
    for item in Api::<ClusterObjectSet>::all(world.client.clone())
        .list(&ours)
        .await?
    {
        note("ClusterObjectSet", &item.metadata);
    }
    for item in Api::<ConfigMap>::all(world.client.clone()).list(&ours).await? {
        note("ConfigMap", &item.metadata);
    }
    for item in Api::<k8s_openapi::api::apps::v1::Deployment>::all(world.client.clone())
        .list(&ours)
        .await?
    {
        note("Deployment", &item.metadata);
    }
    Ok(versions)
}

async fn at_rest(world: &World) -> Result<BTreeMap<String, String>> {
    eventually(LIMIT, "nothing is written any more", async || {
        let before = versions(world).await?;
        tokio::time::sleep(QUIET).await;
        let after = versions(world).await?;
        ensure!(before == after, "{before:?} became {after:?}");
        Ok(after)
    })
    .await
}

async fn a_restart_writes_nothing(world: &World) -> Result<()> {
    for name in EXTENSIONS {
        world.create_namespace(name).await?;
        world
            .apply_extension(name, name, json!({"packageName": PACKAGE, "version": "1.0.1"}))
            .await?;
    }
    for name in EXTENSIONS {
        world.until(name, "Ready", "True", "Succeeded", "").await?;
    }
    let before = at_rest(world).await?;
    ensure!(before.len() == 4 * EXTENSIONS.len(), "{before:?}");
    world.controller.lock().await.controller().restart().await?;
    // It is at work again: what is changed now is repaired.
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "third");
    maps.delete("sample-config", &DeleteParams::default()).await?;
    eventually(LIMIT, "what was deleted is back", async || {
        ensure!(maps.get_opt("sample-config").await?.is_some());
        Ok(())
    })
    .await?;
    let mut after = at_rest(world).await?;
    let repaired = "ConfigMap third/sample-config";
    ensure!(after.get(repaired) != before.get(repaired), "{after:?}");
    if let Some(version) = before.get(repaired) {
        after.insert(repaired.to_owned(), version.clone());
    }
    ensure!(before == after, "{before:?} became {after:?}");
    Ok(())
}

/// Lists the objects with the extension's label.
async fn left(world: &World, name: &str) -> Result<Vec<String>> {
    let label = format!("{}={name}", keys::OWNER_NAME_LABEL);
    let ours = ListParams::default().labels(&label);
    let sets = Api::<ClusterObjectSet>::all(world.client.clone())
        .list(&ours)
        .await?;
    let maps = Api::<ConfigMap>::all(world.client.clone()).list(&ours).await?;
    let mut names: Vec<String> = sets.items.iter().map(kube::ResourceExt::name_any).collect();
    names.extend(maps.items.iter().map(kube::ResourceExt::name_any));
    Ok(names)
}

async fn lets_go_of_all(world: &World, shell: &Shell) -> Result<()> {
    let script = commands("deleting.md", "### Delete all installed objects", "left")?;
    shell.run(&script).await?;
    let extensions: Api<ClusterExtension> = Api::all(world.client.clone());
    eventually(LIMIT, "all of it is gone", async || {
        ensure!(
            extensions.get_opt("left").await?.is_none(),
            "the extension is there"
        );
        let left = left(world, "left").await?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(())
    })
    .await
}

async fn keeps_all(world: &World, shell: &Shell) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), "kept");
    let before = maps.get("sample-config").await?;
    let script = commands("deleting.md", "### Keep all installed objects", "kept")?;
    shell.run(&script).await?;
    let (extensions, sets): (Api<ClusterExtension>, Api<ClusterObjectSet>) =
        (Api::all(world.client.clone()), Api::all(world.client.clone()));
    eventually(LIMIT, "only the objects are left", async || {
        ensure!(
            extensions.get_opt("kept").await?.is_none(),
            "the extension is there"
        );
        if let Some(set) = sets.get_opt("kept-1").await? {
            bail!("the revision is there: {:?}", set.metadata);
        }
        Ok(())
    })
    .await?;
    let after = maps.get("sample-config").await?;
    ensure!(
        after.uid() == before.uid()
            && after.metadata.deletion_timestamp.is_none()
            && after.owner_references().is_empty(),
        "{:?}",
        after.metadata
    );
    Ok(())
}
