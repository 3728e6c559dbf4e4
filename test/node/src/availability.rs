//! Checks of the product's availability: evictions, drains of the node, and leaders that stop or crash.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use kube::Client;
use olm_harness::eventually;
use serde_json::Value;

use crate::cluster::{SYSTEM, apply, attempt, condition, get, is_ready, items, kubectl, pin, run};
use crate::content::small_extensions;
use crate::life::{delete_small, small_are_ready};
use crate::processes::{PROGRAMS, processes};
use crate::product::rolled_out;
use crate::timing::{LEASE, Watch};

const LIMIT: Duration = Duration::from_mins(1);
/// Maximum time without a leader after a crash of the leader; see docs/operations.md.
const TAKEOVER: Duration = Duration::from_secs(20);
/// Maximum time without a leader after the leader released its Lease; see docs/operations.md.
const SUCCESSION: Duration = Duration::from_secs(2);
const LEASES: [(&str, &str); 2] = [
    ("catalogd-operator-lock", PROGRAMS[0]),
    ("9c4404e7.operatorframework.io", PROGRAMS[1]),
];
const DRAIN: [&str; 5] = [
    "drain",
    "node",
    "--ignore-daemonsets",
    "--delete-emptydir-data",
    "--pod-selector=app.kubernetes.io/part-of=olm",
];

fn pods_of(program: &str) -> Result<Vec<Value>> {
    let list = get(&format!(
        "-n {SYSTEM} pods --selector app.kubernetes.io/name={program}"
    ))?;
    Ok(items(&list).cloned().collect())
}

fn ready(pods: &[Value]) -> usize {
    let ready = |pod: &&Value| condition(pod, "Ready")[0] == "True";
    pods.iter().filter(ready).count()
}

/// Evicts pods as a drain does. One of three replicas can be evicted, and the next one only after the replacement of the first is
/// ready.
pub(crate) async fn evictions() -> Result<String> {
    for program in PROGRAMS {
        let pods = pods_of(program)?;
        let names: Vec<&str> = pods
            .iter()
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
            let mut pods = pods_of(program)?;
            pods.retain(|pod| pod["metadata"]["name"] != names[0]);
            let ready = ready(&pods);
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

/// Drains the only node while each controller has one replica. Nothing may block the drain, and the pods must return afterwards.
pub(crate) async fn drain_of_single_replicas(version: &str) -> Result<String> {
    let drained = attempt("kubectl", &[&DRAIN[..], &["--timeout=60s"]].concat(), "")?;
    kubectl("uncordon node")?;
    ensure!(drained.code == Some(0), "the drain failed: {drained:?}");
    rolled_out()?;
    eventually(LIMIT, "the extension is Ready", async || is_ready(version)).await?;
    Ok(String::new())
}

/// Drains the only node while each controller has three replicas. Evicted pods find no other node, so the disruption budgets must
/// keep two replicas of each controller on the node.
pub(crate) async fn drain_of_three_replicas() -> Result<String> {
    let drained = attempt("kubectl", &[&DRAIN[..], &["--timeout=20s"]].concat(), "");
    let left = PROGRAMS.map(|program| pods_of(program).map(|pods| ready(&pods)));
    kubectl("uncordon node")?;
    let drained = drained?;
    ensure!(
        drained.code != Some(0) && drained.err.contains("disruption budget"),
        "no budget stopped the drain: {drained:?}"
    );
    for (program, left) in PROGRAMS.into_iter().zip(left) {
        let left = left?;
        ensure!(
            left == 2,
            "{left} pods of {program} were ready on the drained node"
        );
    }
    eventually(LIMIT, "the evicted pods are replaced", async || {
        for program in PROGRAMS {
            let ready = ready(&pods_of(program)?);
            ensure!(ready == 3, "{ready} pods of {program} are ready");
        }
        Ok(())
    })
    .await?;
    Ok(String::new())
}

/// Stops the leaders one after the other. Measures the time from the release of the Lease until another replica leads.
pub(crate) async fn leader_stops(client: &Client) -> Result<String> {
    let mut remark = Vec::new();
    for (lease, program) in LEASES {
        let old = holder(&get(&format!("-n {SYSTEM} lease {lease}"))?);
        let pod = old.split('_').next().unwrap_or_default();
        let is = move |object: &Value| object["metadata"]["name"] == lease;
        let free = move |object: &Value| is(object) && holder(object).is_empty();
        let former = old.clone();
        let held = move |object: &Value| is(object) && !["", &former].contains(&holder(object).as_str());
        let free = Watch::start(client, "the Lease is released", LEASE, SYSTEM, free).await;
        let held = Watch::start(client, "another replica leads", LEASE, SYSTEM, held).await;
        kubectl(&format!("-n {SYSTEM} delete pod {pod} --wait=false"))?;
        let (free, held) = (free.seen(LIMIT).await?, held.seen(LIMIT).await?);
        let without = held.at.saturating_duration_since(free.at);
        ensure!(without <= SUCCESSION, "{program} had no leader for {without:?}");
        remark.push(format!(
            "{program} without a leader for {:.2} s",
            without.as_secs_f64()
        ));
    }
    eventually(LIMIT, "the pods are replaced", async || {
        for program in PROGRAMS {
            let pods = pods_of(program)?;
            ensure!(
                pods.len() == 3 && ready(&pods) == 3,
                "{program} has {} pods",
                pods.len()
            );
        }
        Ok(())
    })
    .await?;
    Ok(remark.join(", "))
}

/// Kills the processes of both leaders while twenty extensions are installed and one is upgraded.
pub(crate) async fn leader_killed() -> Result<String> {
    let mut leaders = Vec::new();
    for (lease, program) in LEASES {
        let old = holder(&get(&format!("-n {SYSTEM} lease {lease}"))?);
        let pod = old.split('_').next().unwrap_or_default();
        let process = processes(program)?
            .into_iter()
            .find(|process| process.host == pod)
            .with_context(|| format!("no process of {old}"))?;
        leaders.push((lease, program, old, process.id.to_string()));
    }
    apply(&small_extensions())?;
    pin("1.1.0")?;
    let ids: Vec<&str> = leaders.iter().map(|leader| leader.3.as_str()).collect();
    run("kill", &[&["-9"], &ids[..]].concat(), "")?;
    let killed = Instant::now();
    let mut remark = Vec::new();
    for (lease, program, old, _) in leaders {
        eventually(TAKEOVER, "another replica leads", async || {
            let new = holder(&get(&format!("-n {SYSTEM} lease {lease}"))?);
            ensure!(!new.is_empty() && new != old, "{new} leads");
            Ok(())
        })
        .await?;
        remark.push(format!(
            "{program} led again after {:.1} s",
            killed.elapsed().as_secs_f64()
        ));
    }
    eventually(LIMIT, "the new leaders upgrade the extension", async || {
        is_ready("1.1.0")
    })
    .await?;
    small_are_ready().await?;
    remark.push(format!(
        "all were Ready after {:.1} s",
        killed.elapsed().as_secs_f64()
    ));
    delete_small()?;
    Ok(remark.join(", "))
}

fn holder(lease: &Value) -> String {
    let holder = lease["spec"]["holderIdentity"].as_str();
    holder.unwrap_or_default().to_owned()
}
