//! Random sequences of requests to a world and to kube-apiserver: the same codes and objects, apart from uids, resource
//! versions and times.
//!
//! `cargo xtask world --sequences N --seed S --report FILE` runs more of them.

#![expect(clippy::print_stdout, reason = "the result of the comparison")]

mod compare;
mod crds;
mod generate;
mod kinds;
mod olm;
mod rights;
mod rng;
mod run;
mod settle;
mod step;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use olm_harness::ControlPlane;
use olm_proof::{Report, Violation};
use parking_lot::Mutex;

use rights::Rights;
use run::{Difference, Pair};
use step::Step;
use watch::Watch;

/// Number of sequences that run at the same time.
const WORKERS: usize = 4;
/// One of this number of sequences waits for the garbage collector and the namespace controller.
const SETTLING: u64 = 50;
/// Place of the sequence of a user with few rights among as many sequences.
const RIGHTS: u64 = 25;
/// Place of the life of a CRD among as many sequences.
const CRDS: (u64, u64) = (130, 250);
/// Number of differences after which a run ends.
const ENOUGH: usize = 20;
/// Repetitions of a sequence with a difference whose outcome depends on the timing of the real controllers or authorizer.
const REPETITIONS: usize = 40;

/// Gaps: sentences about what the comparison leaves out, or the world does not do.
const NOT_COVERED: [&str; 16] = [
    "Of the outcomes that a race of the real garbage collector can have, the world has one.",
    "Texts of messages, and reasons of single causes, are not compared; codes, reasons and fields of causes are.",
    "Strategic merge patches of the world are merge patches.",
    "Defaults and validation of built-in kinds: only names, labels, finalizers, owners, immutable fields of ConfigMaps, Secrets, bindings and Deployments, and rules of roles.",
    "Deployments, Services, Pods, webhooks, APIServices and Events are served, but no sequence compares them.",
    "Services get no cluster IP, and there are no workloads: no ReplicaSet, no Pod and no status of a Deployment.",
    "CRDs with several versions have no conversion but a change of apiVersion; schemas of CRDs are not validated.",
    "Escalation checks of roles and bindings are missing; aggregated roles are not compared.",
    "An empty list of a built-in object is never null.",
    "Admission webhooks, admission policies, quotas, priority and fairness, and audit are missing.",
    "Namespaces terminate without conditions in their status.",
    "Owners of objects that a finalizer holds in a terminating namespace are not compared: they depend on a race of the real controllers.",
    "The garbage collector of the world knows an owner's absence at once.",
    "Bookmarks between events, and lists that continue after a compaction, are made but not compared.",
    "CEL rules that olm-bundle cannot decide are taken to hold.",
    "The order of managed fields within one second is not compared.",
];

/// Arguments.
struct Args {
    sequences: u64,
    seed: u64,
    report: Option<PathBuf>,
}

/// What a run found.
#[derive(Default)]
struct Found {
    requests: BTreeMap<(String, String), u64>,
    /// Seeds of sequences that kube-apiserver answered as the world only when they were repeated.
    varying: Vec<u64>,
    differences: Vec<(u64, Vec<String>)>,
}

impl Found {
    /// Records the differences of a sequence, and prints them at once: a run can take hours.
    fn add(&mut self, seed: u64, lines: Vec<String>) {
        println!("seed {seed}");
        for line in &lines {
            println!("  {line}");
        }
        println!();
        self.differences.push((seed, lines));
    }
}

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let result = runtime
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(all(&args())));
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the arguments. Those of other test programs are ignored.
fn args() -> Args {
    let mut out = Args {
        sequences: 300,
        seed: 1,
        report: None,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        match name.as_str() {
            "--sequences" => {
                out.sequences = given.next().and_then(|n| n.parse().ok()).unwrap_or(out.sequences);
            }
            "--seed" => out.seed = given.next().and_then(|n| n.parse().ok()).unwrap_or(out.seed),
            "--report" => out.report = given.next().map(PathBuf::from),
            _ => {}
        }
    }
    out
}

async fn all(args: &Args) -> Result<bool> {
    let plane = ControlPlane::start().await?;
    let namespaces: Vec<String> = (0..WORKERS).map(|worker| format!("world-{worker}")).collect();
    let crds = kinds::crds();
    run::prepare_real(&plane.client(), &namespaces, &crds).await?;
    let world = run::base_world(&namespaces, &crds);
    let found = Arc::new(Mutex::new(Found::default()));
    let next = Arc::new(AtomicU64::new(args.seed));
    let end = args.seed + args.sequences;
    let started = std::time::Instant::now();
    let mut workers = Vec::new();
    for (worker, namespace) in namespaces.iter().enumerate() {
        let pair = Pair {
            client: plane.client(),
            world: world.clone(),
            namespace: namespace.clone(),
            prefix: format!("w{worker}"),
        };
        let (found, next) = (Arc::clone(&found), Arc::clone(&next));
        workers.push(async move { work(&pair, &found, &next, end).await });
    }
    futures::future::try_join_all(workers).await?;
    let found = found.lock();
    let total: u64 = found.requests.values().sum();
    println!(
        "{} sequences with {total} requests in {:.1} s: {} with differences, {} with an answer that varies",
        args.sequences,
        started.elapsed().as_secs_f64(),
        found.differences.len(),
        found.varying.len()
    );
    // The line that sums a test program up: the sequences are one test.
    let bad = found.differences.len();
    let good = usize::from(bad == 0);
    let verdict = if bad == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {verdict}. {good} passed; {bad} failed; 0 ignored; 0 measured; 0 filtered out; finished in {:.2}s",
        started.elapsed().as_secs_f64()
    );
    if let Some(path) = &args.report {
        report(args, &found).write(path)?;
    }
    Ok(found.differences.is_empty())
}

async fn work(pair: &Pair, found: &Mutex<Found>, next: &AtomicU64, end: u64) -> Result<()> {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end || found.lock().differences.len() >= ENOUGH {
            return Ok(());
        }
        if seed.is_multiple_of(SETTLING) {
            settle(pair, found, seed).await?;
            continue;
        }
        if seed % CRDS.1 == CRDS.0 {
            let steps = crds::sequence(seed);
            let lines = pair.life_of_crd(&steps).await?;
            finish(found, seed, &steps, &lines);
            continue;
        }
        if seed % SETTLING == RIGHTS {
            rights(pair, found, seed).await?;
            continue;
        }
        let steps = generate::sequence(seed);
        for step in &steps {
            *found.lock().requests.entry(step.name()).or_default() += 1;
        }
        let watch = seed
            .is_multiple_of(4)
            .then(|| Watch::of(seed, generate::kinds(seed)[0]));
        if watch.is_some() {
            *found
                .lock()
                .requests
                .entry(("watch".into(), "of a whole sequence".into()))
                .or_default() += 1;
        }
        if let Some(difference) = pair.run(&steps, watch.as_ref()).await? {
            let lines = shrunk(pair, steps, watch.as_ref(), difference).await?;
            found.lock().add(seed, lines);
        }
    }
}

/// Compares the answers to a user with few rights. The real authorizer can still know the rights of the sequence before.
async fn rights(pair: &Pair, found: &Mutex<Found>, seed: u64) -> Result<()> {
    let rights = Rights::of(seed);
    let steps = rights.steps();
    let mut difference = pair.rights(&rights).await?;
    for _ in 0..REPETITIONS {
        if difference.is_none() {
            break;
        }
        if pair.rights(&rights).await?.is_none() {
            difference = None;
            found.lock().varying.push(seed);
        }
    }
    let until = difference
        .as_ref()
        .map_or(steps.len(), |difference| difference.at + 1);
    let lines = difference.map(|difference| difference.lines).unwrap_or_default();
    finish(found, seed, &steps[..until], &lines);
    Ok(())
}

/// Compares what garbage collection and the end of a namespace lead to. Workers of the real garbage collector run at once, so one
/// sequence can have several outcomes there.
async fn settle(pair: &Pair, found: &Mutex<Found>, seed: u64) -> Result<()> {
    let steps = settle::sequence(seed);
    let mut lines = pair.settle(&steps).await?;
    for _ in 0..REPETITIONS {
        if lines.is_empty() {
            break;
        }
        if pair.settle(&steps).await?.is_empty() {
            lines.clear();
            found.lock().varying.push(seed);
        }
    }
    finish(found, seed, &steps, &lines);
    Ok(())
}

/// Records the requests of a sequence, and its differences if there are any.
fn finish(found: &Mutex<Found>, seed: u64, steps: &[Step], lines: &[String]) {
    let mut found = found.lock();
    for step in steps {
        *found.requests.entry(step.name()).or_default() += 1;
    }
    if !lines.is_empty() {
        let trace = steps.iter().map(ToString::to_string);
        let trace = trace.chain(lines.iter().map(|line| format!("  {line}")));
        found.add(seed, trace.collect());
    }
}

/// Drops requests that the difference does not need, and describes the rest.
async fn shrunk(
    pair: &Pair,
    mut steps: Vec<Step>,
    watch: Option<&Watch>,
    mut difference: Difference,
) -> Result<Vec<String>> {
    steps.truncate(difference.at + 1);
    let mut at = steps.len().saturating_sub(1);
    while at > 0 {
        at -= 1;
        let mut fewer = steps.clone();
        fewer.remove(at);
        if let Some(other) = pair.run(&fewer, watch).await? {
            fewer.truncate(other.at + 1);
            steps = fewer;
            difference = other;
            at = at.min(steps.len().saturating_sub(1));
        }
    }
    let mut out: Vec<String> = steps.iter().map(ToString::to_string).collect();
    out.extend(difference.lines.iter().map(|line| format!("  {line}")));
    Ok(out)
}

fn report(args: &Args, found: &Found) -> Report {
    let mut figures = vec![("sequences".to_owned(), args.sequences.to_string())];
    let total: u64 = found.requests.values().sum();
    figures.push(("requests".into(), total.to_string()));
    for ((verb, kind), count) in &found.requests {
        figures.push((format!("{verb} {kind}"), count.to_string()));
    }
    figures.push((
        "sequences that kube-apiserver answers as the world only in some of forty repetitions".into(),
        found.varying.len().to_string(),
    ));
    figures.push((
        "sequences with differences".into(),
        found.differences.len().to_string(),
    ));
    Report {
        title: "The world against kube-apiserver".into(),
        about: "Random sequences of requests go to the simulated API server and to kube-apiserver. Status codes, reasons, fields of causes and objects must be equal, apart from uids, resource versions and times.".into(),
        figures,
        violations: found
            .differences
            .iter()
            .map(|(seed, lines)| Violation {
                invariant: "the world answers as kube-apiserver".into(),
                seed: seed.to_string(),
                text: lines.join("; "),
            })
            .collect(),
        not_covered: NOT_COVERED.map(Into::into).into(),
        ran: None,
        command: format!("cargo xtask world --sequences {} --seed {}", args.sequences, args.seed),
    }
}
