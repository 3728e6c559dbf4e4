//! Benchmark of operator-controller on a real API server: one small extension, drift, many extensions, a restart,
//! idle time, deletion.
//!
//! `hack/bench/extensions.sh` builds the programs and runs this; the results are in `docs/benchmarks.md`. Requests
//! are counted in the client's trace, CPU time and memory come from Linux.

#![expect(
    clippy::print_stdout,
    clippy::too_many_lines,
    reason = "what it measures is its output; one row after the other"
)]

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use olm_api::{ClusterCatalog, ClusterExtension, ClusterObjectSet};
use olm_harness::{
    Catalogd, ControlPlane, ControllerOptions, ImageBuilder, OperatorController, Registry, build_controllers,
    install_crds,
};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_mins(5);
const TICKS_PER_SECOND: f64 = 100.0;

#[tokio::main]
async fn main() -> Result<()> {
    let many: usize = std::env::args()
        .nth(1)
        .map_or(Ok(200), |text| text.parse())
        .context("the argument is how many extensions there are to be")?;
    let plane = ControlPlane::start().await?;
    let client = plane.client();
    install_crds(&client).await?;
    let registry = Registry::start().await?;
    let _catalogd = Catalogd::start(&plane, &registry).await?;
    let options = ControllerOptions {
        envs: vec![("RUST_LOG".to_owned(), "warn,kube_client=debug".to_owned())],
        ..ControllerOptions::default()
    };
    let mut controller = OperatorController::start_with(&plane, &registry, options).await?;
    println!("| work | result |\n|---|---|");
    let print_row = |work: &str, result: &str| println!("| {work} | {result} |");
    let program = build_controllers().await?.join("operator-controller");
    let bytes = u32::try_from(fs::metadata(&program)?.len()).unwrap_or(u32::MAX);
    tokio::time::sleep(QUIET).await;
    print_row(
        "idle; the program itself",
        &format!(
            "{}; {:.1} MB",
            Usage::of(&mut controller)?,
            f64::from(bytes) / 1e6
        ),
    );
    publish(&client, &registry).await?;
    let bench = Bench { client };

    // The first extension also triggers discovery of each kind, so the benchmark reports later ones.
    for index in 0..3 {
        let before = Usage::of(&mut controller)?;
        let time = bench.install(&[index]).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let after = Usage::of(&mut controller)?;
        print_row(
            &format!("extension {}, create → Installed", index + 1),
            &format!("{time:.2?}, {}", after.since(&before)),
        );
    }

    let maps: Api<ConfigMap> = Api::namespaced(bench.client.clone(), &namespace(0));
    let start = Instant::now();
    maps.delete("one", &DeleteParams::default()).await?;
    until("the deleted object is back", async || {
        Ok(maps.get_opt("one").await?.is_some())
    })
    .await?;
    let deleted = start.elapsed();
    let start = Instant::now();
    let change = json!({"data": {"key": "changed"}});
    maps.patch("one", &PatchParams::default(), &Patch::Merge(&change))
        .await?;
    until("the changed object is back", async || {
        let data = maps.get("one").await?.data.unwrap_or_default();
        Ok(data.get("key").map(String::as_str) == Some("value"))
    })
    .await?;
    print_row(
        "drift: deleted / changed object back",
        &format!("{deleted:.2?} / {:.2?}", start.elapsed()),
    );

    let before = Usage::of(&mut controller)?;
    let time = bench.upgrade().await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = Usage::of(&mut controller)?;
    print_row(
        "upgrade along an edge (the rest: with the installation before it)",
        &format!("{time:.2?}, {}", after.since(&before)),
    );

    wait_until_idle(&mut controller).await?;
    let before = Usage::of(&mut controller)?;
    bench.trigger_reconciles("tiny-1-1").await?;
    let usage_of_reconciles = wait_until_idle(&mut controller).await?.since(&before);
    print_row(
        &format!("{RECONCILES} times a reconcile of extension and revision that changes nothing"),
        &usage_of_reconciles.to_string(),
    );

    let all: Vec<usize> = (3..many).collect();
    let before = Usage::of(&mut controller)?;
    let time = bench.install(&all).await?;
    let after = Usage::of(&mut controller)?;
    print_row(
        &format!("{} at once, all Installed", all.len()),
        &format!("{time:.1?}, {}", after.since(&before)),
    );

    wait_until_idle(&mut controller).await?;
    let before = Usage::of(&mut controller)?;
    let start = Instant::now();
    bench.change_catalog(&registry).await?;
    let changed = wait_until_idle(&mut controller).await?.since(&before);
    print_row(
        &format!("the catalog changes its digest with {many}, nothing to upgrade, until no request follows"),
        &format!("{:.1?}, {changed}", start.elapsed().saturating_sub(QUIET)),
    );

    let start = Instant::now();
    let mut before = Usage::of(&mut controller)?;
    // The log continues; the new process starts with zero CPU time.
    before.cpu_seconds = 0.0;
    controller.controller().restart().await?;
    let restarted = wait_until_idle(&mut controller).await?.since(&before);
    print_row(
        &format!("restart with {many}, until no request follows"),
        &format!("{:.1?}, {restarted}", start.elapsed().saturating_sub(QUIET)),
    );

    let before = Usage::of(&mut controller)?;
    let rest = Duration::from_secs(30);
    tokio::time::sleep(rest).await;
    let after = Usage::of(&mut controller)?;
    print_row(&format!("{rest:?} at rest"), &after.since(&before).to_string());

    let (start, before) = (Instant::now(), Usage::of(&mut controller)?);
    let extensions: Api<ClusterExtension> = Api::all(bench.client.clone());
    extensions
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    until("all are gone", async || {
        let left = extensions.list_metadata(&ListParams::default()).await?;
        Ok(left.items.is_empty())
    })
    .await?;
    let time = start.elapsed();
    let after = Usage::of(&mut controller)?;
    print_row(
        &format!("delete {many}"),
        &format!("{time:.1?}, {}", after.since(&before)),
    );
    Ok(())
}

/// Length of a pause without requests that counts as idle.
const QUIET: Duration = Duration::from_secs(3);

async fn wait_until_idle(controller: &mut OperatorController) -> Result<Usage> {
    let mut last = Usage::of(controller)?;
    let start = Instant::now();
    loop {
        tokio::time::sleep(QUIET).await;
        let now = Usage::of(controller)?;
        if now.total() == last.total() {
            return Ok(now);
        }
        ensure!(start.elapsed() < TIMEOUT, "requests do not end: {now}");
        last = now;
    }
}

struct Bench {
    client: Client,
}

impl Bench {
    /// Creates the extensions of these numbers and waits until all are installed.
    async fn install(&self, numbers: &[usize]) -> Result<Duration> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        for number in numbers {
            let namespace = serde_json::from_value(json!({"metadata": {"name": namespace(*number)}}))?;
            namespaces.create(&PostParams::default(), &namespace).await?;
        }
        let extensions: Api<ClusterExtension> = Api::all(self.client.clone());
        let start = Instant::now();
        for number in numbers {
            let extension = serde_json::from_value(json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
                "metadata": {"name": format!("tiny-{number}")},
                "spec": {"namespace": namespace(*number), "source": {"sourceType": "Catalog", "catalog": {"packageName": "tiny"}}},
            }))?;
            extensions.create(&PostParams::default(), &extension).await?;
        }
        until("all are installed", async || {
            if let [only] = numbers {
                return Ok(installed(&extensions.get(&format!("tiny-{only}")).await?));
            }
            let list = extensions.list(&ListParams::default()).await?;
            Ok(list.items.iter().all(installed))
        })
        .await?;
        Ok(start.elapsed())
    }
}

impl Bench {
    /// Installs the first version of a package with two, and upgrades to the second.
    async fn upgrade(&self) -> Result<Duration> {
        let namespace = serde_json::from_value(json!({"metadata": {"name": "edge"}}))?;
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        namespaces.create(&PostParams::default(), &namespace).await?;
        let extensions: Api<ClusterExtension> = Api::all(self.client.clone());
        let mut start = Instant::now();
        for version in ["1.0.0", "1.0.1"] {
            start = Instant::now();
            let extension = json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "edge"},
                "spec": {"namespace": "edge",
                    "source": {"sourceType": "Catalog", "catalog": {"packageName": "edge", "version": version}}},
            });
            let params = PatchParams::apply("bench");
            extensions
                .patch("edge", &params, &Patch::Apply(extension))
                .await?;
            until("it is installed", async || {
                let status = extensions.get("edge").await?.status.unwrap_or_default();
                Ok(status
                    .install
                    .is_some_and(|install| install.bundle.version == version))
            })
            .await?;
        }
        Ok(start.elapsed())
    }

    /// Triggers reconciles of a revision and its extension.
    async fn trigger_reconciles(&self, revision: &str) -> Result<()> {
        let sets: Api<ClusterObjectSet> = Api::all(self.client.clone());
        for number in 0..RECONCILES {
            let patch = json!({"metadata": {"annotations": {"bench": number.to_string()}}});
            sets.patch(revision, &PatchParams::default(), &Patch::Merge(&patch))
                .await?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Pushes the same packages and one more that no extension uses.
    async fn change_catalog(&self, registry: &Registry) -> Result<()> {
        let mut metas = metas(&registry.host());
        metas.push(json!({"schema": "olm.package", "name": "another", "defaultChannel": "none"}));
        push_catalog(registry, &metas, "bench/catalog:2").await?;
        let reference = format!("{}/bench/catalog:2", registry.host());
        let catalogs: Api<ClusterCatalog> = Api::all(self.client.clone());
        let patch = json!({"spec": {"source": {"image": {"ref": reference}}}});
        catalogs
            .patch("bench", &PatchParams::default(), &Patch::Merge(&patch))
            .await?;
        until("the new content is served", async || {
            let catalog = catalogs.get("bench").await?;
            let generation = catalog.metadata.generation;
            let conditions = catalog.status.unwrap_or_default().conditions.unwrap_or_default();
            Ok(conditions.iter().any(|c| {
                c.type_ == "Progressing" && c.reason == "Succeeded" && c.observed_generation == generation
            }))
        })
        .await
    }
}

/// Number of changes to one revision.
const RECONCILES: usize = 20;

fn namespace(number: usize) -> String {
    format!("bench-{number}")
}

fn installed(extension: &ClusterExtension) -> bool {
    let conditions = extension.status.iter().flat_map(|status| &status.conditions);
    conditions
        .flatten()
        .any(|condition| condition.type_ == "Installed" && condition.status == "True")
}

async fn until(what: &str, mut check: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let start = Instant::now();
    while !check().await? {
        ensure!(start.elapsed() < TIMEOUT, "not within {TIMEOUT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// Resources that a controller has used so far.
#[derive(Debug, Default)]
struct Usage {
    requests: BTreeMap<String, usize>,
    cpu_seconds: f64,
    resident_kib: u64,
}

impl Usage {
    fn of(controller: &mut OperatorController) -> Result<Self> {
        let controller = controller.controller();
        let mut usage = Self::default();
        let log = fs::read_to_string(controller.log()).context("the log cannot be read")?;
        for line in log.lines().filter(|line| line.ends_with("requesting")) {
            let method = line.split("http.method=").nth(1).unwrap_or_default();
            let method = method.split(' ').next().unwrap_or_default();
            let kind = if line.contains("watch=true") {
                "WATCH"
            } else {
                method
            };
            *usage.requests.entry(kind.to_owned()).or_default() += 1;
        }
        let pid = controller
            .process()
            .and_then(|process| process.pid())
            .context("operator-controller does not run")?;
        // The process is a child of its supervisor, if it has one.
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let pid = children
            .split_whitespace()
            .next()
            .map_or_else(|| pid.to_string(), ToOwned::to_owned);
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<f64>().ok());
        usage.cpu_seconds =
            (ticks(11).unwrap_or_default() + ticks(12).unwrap_or_default()) / TICKS_PER_SECOND;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let resident_kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        usage.resident_kib = resident_kib
            .and_then(|text| text.split_whitespace().next()?.parse().ok())
            .unwrap_or_default();
        Ok(usage)
    }

    fn total(&self) -> usize {
        self.requests.values().sum()
    }

    fn since(&self, before: &Self) -> Self {
        let requests = self.requests.iter().map(|(kind, count)| {
            let earlier = before.requests.get(kind).copied().unwrap_or_default();
            (kind.clone(), count - earlier)
        });
        Self {
            requests: requests.filter(|(_, count)| *count > 0).collect(),
            cpu_seconds: self.cpu_seconds - before.cpu_seconds,
            resident_kib: self.resident_kib,
        }
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kinds: Vec<String> = self
            .requests
            .iter()
            .map(|(kind, count)| format!("{count} {kind}"))
            .collect();
        write!(
            f,
            "{} requests ({}), {:.2} s processor, {:.1} MiB resident",
            self.total(),
            kinds.join(", "),
            self.cpu_seconds,
            f64::from(u32::try_from(self.resident_kib).unwrap_or(u32::MAX)) / 1024.0
        )
    }
}

/// Packages and their versions.
const PACKAGES: [(&str, &[&str]); 2] = [("tiny", &["1.0.0"]), ("edge", &["1.0.0", "1.0.1"])];

/// Returns the content of a catalog of [`PACKAGES`]; each version replaces the previous one.
fn metas(host: &str) -> Vec<serde_json::Value> {
    let mut metas = Vec::new();
    for (package, versions) in PACKAGES {
        metas.push(json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}));
        let mut entries = Vec::new();
        let mut before: Option<String> = None;
        for version in versions {
            let name = format!("{package}.v{version}");
            entries.push(match &before {
                Some(before) => json!({"name": name, "replaces": before}),
                None => json!({"name": name}),
            });
            metas.push(json!({"schema": "olm.bundle", "package": package, "name": name,
                "image": format!("{host}/bench/{package}:{version}"),
                "properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}}]}));
            before = Some(name);
        }
        metas
            .push(json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries}));
    }
    metas
}

async fn push_catalog(registry: &Registry, metas: &[serde_json::Value], tag: &str) -> Result<()> {
    let metas: Vec<String> = metas.iter().map(ToString::to_string).collect();
    ImageBuilder::new()
        .label("operators.operatorframework.io.index.configs.v1", "/configs")
        .file("configs/catalog.json", metas.join("\n"))
        .push(registry, tag)
        .await?;
    Ok(())
}

/// Pushes a bundle of two `ConfigMap`s and a Service.
async fn push_bundle(registry: &Registry, package: &str, version: &str) -> Result<()> {
    let csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("{package}.v{version}")},
        "spec": {"version": version, "installModes": [{"type": "AllNamespaces", "supported": true}],
            "install": {"strategy": "deployment", "spec": {}}},
    });
    let map = |name: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"key": "value", "version": version}})
    };
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": package},
        "spec": {"clusterIP": "None", "selector": {"app": package}}});
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.package.v1": package,
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    }});
    ImageBuilder::new()
        .file("manifests/csv.yaml", csv.to_string())
        .file("manifests/one.yaml", map("one").to_string())
        .file("manifests/two.yaml", map("two").to_string())
        .file("manifests/service.yaml", service.to_string())
        .file("metadata/annotations.yaml", annotations.to_string())
        .push(registry, &format!("bench/{package}:{version}"))
        .await?;
    Ok(())
}

/// Pushes all bundles and the catalog, and waits until it is served.
async fn publish(client: &Client, registry: &Registry) -> Result<()> {
    for (package, versions) in PACKAGES {
        for version in versions {
            push_bundle(registry, package, version).await?;
        }
    }
    push_catalog(registry, &metas(&registry.host()), "bench/catalog:1").await?;
    let catalog = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog", "metadata": {"name": "bench"},
        "spec": {"source": {"type": "Image", "image": {"ref": format!("{}/bench/catalog:1", registry.host())}}},
    });
    let catalogs: Api<ClusterCatalog> = Api::all(client.clone());
    catalogs
        .create(&PostParams::default(), &serde_json::from_value(catalog)?)
        .await?;
    until("the catalog is served", async || {
        let status = catalogs.get("bench").await?.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        Ok(conditions
            .iter()
            .any(|condition| condition.type_ == "Serving" && condition.status == "True"))
    })
    .await
}
