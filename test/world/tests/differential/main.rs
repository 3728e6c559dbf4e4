//! Random sequences of requests to a world and to kube-apiserver: the same codes and objects, apart from uids, resource
//! versions and times.
//!
//! `cargo xtask world --sequences N --seed S --report FILE` runs more of them, and continues a run that was interrupted.

#![expect(clippy::print_stdout, reason = "the result of the comparison")]

mod compare;
mod crds;
mod found;
mod generate;
mod kinds;
mod olm;
mod rights;
mod rng;
mod run;
mod settle;
mod step;
mod watch;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use olm_harness::{ControlPlane, ProcessStats};
use parking_lot::Mutex;

use found::Found;
use run::Pair;
use work::Queue;

/// Number of sequences that run at the same time.
const WORKERS: usize = 12;
/// Number of further sequences at the same time, which wait for controllers most of their time.
const WAITING_WORKERS: usize = 10;

/// Controllers that act on the sequences' objects and namespaces.
const CONTROLLERS: [&str; 4] = [
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
];

/// Arguments.
#[derive(Debug)]
struct Args {
    sequences: u64,
    seed: u64,
    /// File for the report. The progress that it has is continued if it is of the same code.
    report: Option<PathBuf>,
    /// Digest of the code that is compared; empty if it is unknown.
    code: String,
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
        code: String::new(),
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        match name.as_str() {
            "--sequences" => {
                out.sequences = given.next().and_then(|n| n.parse().ok()).unwrap_or(out.sequences);
            }
            "--seed" => out.seed = given.next().and_then(|n| n.parse().ok()).unwrap_or(out.seed),
            "--report" => out.report = given.next().map(PathBuf::from),
            "--code" => out.code = given.next().unwrap_or_default(),
            _ => {}
        }
    }
    out
}

async fn all(args: &Args) -> Result<bool> {
    let plane = ControlPlane::start_fast(&CONTROLLERS).await?;
    let namespaces: Vec<String> = (0..WORKERS + WAITING_WORKERS)
        .map(|worker| format!("world-{worker}"))
        .collect();
    let crds = kinds::crds();
    run::prepare_real(&plane.client(), &namespaces, &crds).await?;
    let world = run::base_world(&namespaces, &crds);
    let found = Mutex::new(Found::start(args)?);
    let seeds = args.seed..args.seed.saturating_add(args.sequences);
    let queues = [false, true].map(|waiting| Queue::of(&seeds, waiting));
    let before = processor_times(&plane);
    let mut workers = Vec::new();
    for (worker, namespace) in namespaces.into_iter().enumerate() {
        let pair = Pair {
            client: plane.client(),
            world: world.clone(),
            namespace,
            prefix: format!("w{worker}"),
        };
        let queue = &queues[usize::from(worker >= WORKERS)];
        workers.push(work::work(pair, &found, queue));
    }
    let ended = futures::future::try_join_all(workers).await;
    print_processor_times(&plane, &before);
    let mut found = found.lock();
    // What was compared before an error counts.
    found.save()?;
    ended?;
    Ok(found.summary())
}

/// Returns the processor time of each process so far.
fn processor_times(plane: &ControlPlane) -> Vec<Duration> {
    let pids = plane.pids().into_iter().chain([std::process::id()]);
    pids.map(|pid| ProcessStats { pid }.cpu().unwrap_or_default())
        .collect()
}

/// Prints the processor time of each process since `before`.
fn print_processor_times(plane: &ControlPlane, before: &[Duration]) {
    let names = ["etcd", "kube-apiserver", "kube-controller-manager", "comparison"];
    let times = processor_times(plane);
    let spent = names.iter().zip(times.iter().zip(before));
    let spent = spent.map(|(name, (after, before))| {
        let seconds = after.saturating_sub(*before).as_secs();
        format!("{name} {seconds} s")
    });
    println!("processor time: {}", spent.collect::<Vec<_>>().join(", "));
}
