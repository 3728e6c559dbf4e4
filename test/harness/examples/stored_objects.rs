//! Benchmark of the memory for validating many stored objects against a changed CRD, on a real API server.
//!
//! `hack/bench/stored-objects.sh` builds the programs and runs this. It creates the objects, runs `kubectl olm
//! crd-safety --stored-objects`, and prints the peak memory of that process.

#![expect(clippy::print_stdout, reason = "what it measures is its output")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt as _};
use olm_harness::ControlPlane;
use serde_json::{Value, json};

/// Limit for the peak memory of the process, in kilobytes.
const MAX_PEAK: u64 = 64 * 1024;
/// Ratio of all to invalid objects.
const INVALID_EVERY: usize = 1000;
/// Number of objects created concurrently.
const MAX_CONCURRENT: usize = 16;

fn crd(size: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "grains.bench.example.com"},
        "spec": {
            "group": "bench.example.com", "scope": "Namespaced",
            "names": {"kind": "Grain", "listKind": "GrainList", "plural": "grains", "singular": "grain"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"spec": {"type": "object",
                    "properties": {"size": size, "color": {"type": "string"}},
                    "x-kubernetes-validations": [{"rule": "self.size >= 0 || self.color == 'none'"}]}}}}}],
        },
    })
}

async fn fill(client: &Client, many: usize) -> Result<()> {
    let kind = GroupVersionKind::gvk("bench.example.com", "v1", "Grain");
    let resource = ApiResource::from_gvk_with_plural(&kind, "grains");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let create = |at: usize| {
        let api = api.clone();
        async move {
            let size = if at.is_multiple_of(INVALID_EVERY) { 101 } else { 5 };
            let grain: DynamicObject = serde_json::from_value(json!({
                "apiVersion": "bench.example.com/v1", "kind": "Grain",
                "metadata": {"name": format!("g{at:06}")}, "spec": {"size": size, "color": "grey"},
            }))?;
            api.create(&PostParams::default(), &grain).await?;
            Ok::<_, anyhow::Error>(())
        }
    };
    stream::iter((0..many).map(create))
        .buffer_unordered(MAX_CONCURRENT)
        .try_collect::<()>()
        .await
}

/// Returns the peak memory of a running process in kilobytes.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let program: PathBuf = args
        .next()
        .context("the first argument is the program kubectl-olm")?
        .into();
    let many: usize = args.next().map_or(Ok(100_000), |text| text.parse())?;
    let plane = ControlPlane::start().await?;
    let client = plane.client();
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let old = crd(&json!({"type": "integer"}));
    let created = crds
        .create(&PostParams::default(), &serde_json::from_value(old)?)
        .await?;
    await_condition(crds, &created.name_any(), conditions::is_crd_established()).await?;
    let started = Instant::now();
    fill(&client, many).await?;
    println!("{many} objects made in {:.0?}", started.elapsed());

    let folder = std::env::temp_dir().join(format!("olm-stored-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let new = folder.join("crd.json");
    std::fs::write(&new, crd(&json!({"type": "integer", "maximum": 100})).to_string())?;
    let started = Instant::now();
    let mut child = Command::new(&program)
        .args(["crd-safety", "--stored-objects", "--named", "3", "--kubeconfig"])
        .arg(plane.kubeconfig())
        .arg(&new)
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    let mut max_peak = 0;
    while child.try_wait()?.is_none() {
        max_peak = peak(child.id()).unwrap_or_default().max(max_peak);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let output = child.wait_with_output()?;
    std::fs::remove_dir_all(&folder)?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    println!(
        "checked in {:.1?}; peak {} MB",
        started.elapsed(),
        max_peak.div_ceil(1024)
    );
    let expected = format!("{} of {many} would break", many.div_ceil(INVALID_EVERY));
    ensure!(
        String::from_utf8_lossy(&output.stdout).contains(&expected),
        "it did not say {expected:?}"
    );
    ensure!(max_peak < MAX_PEAK, "more than {} MB", MAX_PEAK / 1024);
    Ok(())
}
