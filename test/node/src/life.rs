//! Checks of a running product: its operator, its own update, its leaders, its memory and its rights.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use olm_harness::eventually;
use serde_json::Value;

use crate::cluster::{SAMPLE, SYSTEM, apply, condition, get, is_ready, items, kubectl, pin, run};
use crate::content::{LAST, small_extensions, small_packages};

const LIMIT: Duration = Duration::from_mins(1);
/// Time after the end of a Lease in which another replica leads; see docs/operations.md.
const TAKEOVER_MARGIN: Duration = Duration::from_secs(30);
/// Idle pods are far below; see docs/benchmarks.md.
const MEMORY_LIMIT_KIB: u64 = 64 * 1024;
const LEASES: [(&str, &str); 2] = [
    ("catalogd-operator-lock", "catalogd"),
    ("9c4404e7.operatorframework.io", "operator-controller"),
];

fn greet(text: &str) -> Result<String> {
    apply(&format!(
        "apiVersion: sample.olmv1-rs.example/v1\nkind: Greeting\nmetadata: {{name: hello, namespace: {SAMPLE}}}\n\
         spec: {{text: '{text}'}}\n"
    ))
}

/// Creates a Greeting that the operator's webhook refuses: the API server trusts the certificate of operator-controller.
pub(crate) fn refuses() -> Result<String> {
    match greet("") {
        Ok(_) => bail!("a greeting without a text was accepted"),
        Err(error) => {
            let text = format!("{error:#}");
            ensure!(
                text.contains("denied the request: a greeting needs a text"),
                "{text}"
            );
            Ok(String::new())
        }
    }
}

/// Creates a Greeting and waits until the sample operator counts it.
pub(crate) async fn reconciles() -> Result<String> {
    greet("Hello")?;
    eventually(LIMIT, "the operator counts the greeting", async || {
        let said = get(&format!("-n {SAMPLE} greeting hello"))?["status"]["said"].take();
        ensure!(said == 1, "it was said {said} times");
        Ok(())
    })
    .await?;
    let log = kubectl(&format!("-n {SAMPLE} logs deployment/sample-operator"))?;
    ensure!(log.contains("sample/hello: Hello"), "the log is {log}");
    Ok(String::new())
}

/// Upgrades to 1.1.0 and waits for the new pod alone.
pub(crate) async fn upgrades() -> Result<String> {
    let before = get(&format!("-n {SAMPLE} pods"))?;
    pin("1.1.0")?;
    eventually(LIMIT, "1.1.0 is Ready", async || is_ready("1.1.0")).await?;
    let after = get(&format!("-n {SAMPLE} pods"))?;
    let names = |list: &Value| {
        items(list)
            .map(|pod| pod["metadata"]["name"].to_string())
            .collect::<BTreeSet<_>>()
    };
    ensure!(
        !names(&after).is_subset(&names(&before)),
        "no new pod: {:?}",
        names(&after)
    );
    Ok(String::new())
}

/// Restarts both Deployments while twenty extensions are being installed and the content is read.
pub(crate) async fn rolling_update() -> Result<String> {
    let authority =
        fs::canonicalize(std::env::var("RUN").context("RUN is not set")?)?.join("catalogd-ca.crt");
    let secret = get(&format!("-n {SYSTEM} secret catalogd-service-own-cert"))?;
    let encoded = secret["data"]["ca.crt"].as_str().context("no ca.crt")?;
    fs::write(&authority, run("base64", &["--decode"], encoded)?)?;
    let stop = Arc::new(AtomicBool::new(false));
    let reader = {
        let (stop, authority) = (Arc::clone(&stop), authority.display().to_string());
        std::thread::spawn(move || read_content(&authority, &stop))
    };
    let rolled = async {
        apply(&small_extensions())?;
        for deployment in [
            "catalogd-controller-manager",
            "operator-controller-controller-manager",
        ] {
            kubectl(&format!("-n {SYSTEM} rollout restart deployment/{deployment}"))?;
            kubectl(&format!(
                "-n {SYSTEM} rollout status deployment/{deployment} --timeout=120s"
            ))?;
        }
        // The old pods stop after the rollout, which ends when the new ones are ready.
        eventually(LIMIT, "the old pods are gone", async || {
            let pods = items(&get(&format!("-n {SYSTEM} pods"))?).count();
            ensure!(pods == 2, "there are {pods} pods");
            Ok(())
        })
        .await?;
        pin(LAST)?;
        eventually(LIMIT, "the new pods upgrade the extension", async || {
            is_ready(LAST)
        })
        .await
    }
    .await;
    stop.store(true, Ordering::Relaxed);
    let (read, failed) = reader.join().map_err(|_| anyhow::anyhow!("the reader died"))?;
    rolled?;
    ensure!(
        failed.is_empty(),
        "{} of {read} reads failed, such as: {}",
        failed.len(),
        failed[0]
    );
    let names: Vec<String> = small_packages().collect();
    let names = names.join(" ");
    kubectl(&format!("delete clusterextensions {names} --timeout=120s"))?;
    kubectl(&format!("delete namespaces {names} --wait=false"))?;
    Ok(format!("{read} reads, none failed"))
}

/// Reads the content on new connections until told to stop. Returns the number of reads and the failed ones.
fn read_content(authority: &str, stop: &AtomicBool) -> (u32, Vec<String>) {
    let url = format!("https://catalogd-service.{SYSTEM}.svc/catalogs/{SAMPLE}/api/v1/all");
    let args = [
        "--silent",
        "--show-error",
        "--fail",
        "--max-time",
        "10",
        "--cacert",
        authority,
        "--output",
        "/dev/null",
        &url,
    ];
    let (mut read, mut failed) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        read += 1;
        if let Err(error) = run("curl", &args, "") {
            failed.push(format!("{error:#}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    (read, failed)
}

/// Evicts pods as a drain does: of three replicas one goes, and the next one only after its replacement is ready.
pub(crate) async fn evictions() -> Result<String> {
    for (_, program) in LEASES {
        let selector = format!("-n {SYSTEM} pods --selector app.kubernetes.io/name={program}");
        let pods = get(&selector)?;
        let names: Vec<&str> = items(&pods)
            .filter_map(|pod| pod["metadata"]["name"].as_str())
            .collect();
        ensure!(names.len() == 3, "{program} has the pods {names:?}");
        evict(names[0])?;
        match evict(names[1]) {
            Err(error) if format!("{error:#}").contains("disruption budget") => {}
            Err(error) => return Err(error),
            Ok(()) => bail!("two pods of {program} were evicted at once"),
        }
        eventually(LIMIT, "the evicted pod is replaced", async || {
            let pods = get(&selector)?;
            let ready = items(&pods)
                .filter(|pod| pod["metadata"]["name"] != names[0] && condition(pod, "Ready")[0] == "True")
                .count();
            ensure!(ready == 3, "{ready} pods are ready");
            Ok(())
        })
        .await?;
    }
    Ok(String::new())
}

fn evict(pod: &str) -> Result<()> {
    let path = format!("/api/v1/namespaces/{SYSTEM}/pods/{pod}/eviction");
    let eviction = format!(
        r#"{{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {{"name": "{pod}", "namespace": "{SYSTEM}"}}}}"#
    );
    run("kubectl", &["create", "--raw", &path, "-f", "-"], &eviction).map(drop)
}

/// Kills the process of each leader and waits until other replicas hold the Leases.
pub(crate) async fn leader_killed() -> Result<String> {
    let started = Instant::now();
    let mut killed = Vec::new();
    for (lease, program) in LEASES {
        let (old, duration) = holder(lease)?;
        let pod = old.split('_').next().unwrap_or_default();
        let process = processes(program)?
            .into_iter()
            .find(|process| process.host == pod)
            .with_context(|| format!("no process of {old}"))?;
        run("kill", &["-9", &process.id.to_string()], "")?;
        killed.push((lease, program, old, duration));
    }
    let mut remark = Vec::new();
    for (lease, program, old, duration) in killed {
        eventually(duration + TAKEOVER_MARGIN, "another replica leads", async || {
            let (new, _) = holder(lease)?;
            ensure!(!new.is_empty() && new != old, "{new} leads");
            Ok(())
        })
        .await?;
        remark.push(format!("{program}: {:.1} s", started.elapsed().as_secs_f64()));
    }
    pin("1.1.0")?;
    eventually(LIMIT, "the new leaders upgrade the extension", async || {
        is_ready("1.1.0")
    })
    .await?;
    Ok(remark.join(", "))
}

/// Returns the holder of a Lease, and the time for which the Lease is valid without a renewal.
fn holder(lease: &str) -> Result<(String, Duration)> {
    let spec = get(&format!("-n {SYSTEM} lease {lease}"))?["spec"].take();
    let holder = spec["holderIdentity"].as_str().unwrap_or_default().to_owned();
    let seconds = spec["leaseDurationSeconds"].as_u64().unwrap_or_default();
    Ok((holder, Duration::from_secs(seconds)))
}

/// A process of the product.
struct Running {
    id: u32,
    host: String,
    resident_kib: u64,
}

fn processes(program: &str) -> Result<Vec<Running>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let Some(id) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else {
            continue;
        };
        // Processes may end meanwhile.
        let Ok(executable) = fs::read_link(path.join("exe")) else {
            continue;
        };
        if executable.file_name().is_none_or(|name| name != program) {
            continue;
        }
        let (Ok(environment), Ok(status)) = (
            fs::read(path.join("environ")),
            fs::read_to_string(path.join("status")),
        ) else {
            continue;
        };
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let host = environment
            .split('\0')
            .find_map(|line| line.strip_prefix("HOSTNAME="));
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        found.push(Running {
            id,
            host: host.unwrap_or_default().to_owned(),
            resident_kib: resident
                .and_then(|text| text.trim().strip_suffix(" kB")?.parse().ok())
                .context("no VmRSS")?,
        });
    }
    Ok(found)
}

/// Measures the resident memory of each pod's process.
pub(crate) fn memory() -> Result<String> {
    let mut remark = Vec::new();
    for (_, program) in LEASES {
        let running = processes(program)?;
        ensure!(!running.is_empty(), "no {program} runs");
        for process in running {
            let resident = process.resident_kib;
            ensure!(resident < MEMORY_LIMIT_KIB, "{program} uses {resident} KiB");
            remark.push(format!("{program} {} MiB", resident / 1024));
        }
    }
    Ok(remark.join(", "))
}

/// Reads the audit log: no service account of the product got 403.
pub(crate) fn nothing_forbidden() -> Result<String> {
    let path = format!(
        "{}/logs/audit.log",
        std::env::var("RUN").context("RUN is not set")?
    );
    let log = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let (mut requests, mut forbidden) = (0_u32, BTreeSet::new());
    for line in log.lines() {
        let event: Value = serde_json::from_str(line)?;
        let user = event["user"]["username"].as_str().unwrap_or_default();
        if !user.starts_with(&format!("system:serviceaccount:{SYSTEM}:")) {
            continue;
        }
        requests += 1;
        if event["responseStatus"]["code"] == 403 {
            forbidden.insert(format!("{user} {} {}", event["verb"], event["requestURI"]));
        }
    }
    ensure!(requests > 100, "the log has {requests} requests of the product");
    ensure!(forbidden.is_empty(), "403: {forbidden:?}");
    Ok(format!("{requests} requests"))
}
