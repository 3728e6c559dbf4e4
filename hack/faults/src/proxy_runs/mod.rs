//! Schedules of faults between the controller and its servers. Each schedule is a chain of stages with faults, which `plan`
//! derives from its seed. After every stage the faults end, and the cluster must converge; the invariants are checked at the end
//! of the chain.

mod figures;
mod plan;
mod schedule;
mod step;
mod trace;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use olm_proof::{Report, Violation};
use parking_lot::Mutex;

pub use plan::{Step, steps};

use crate::pool::{self, Queue};
use crate::results::Tally;
use crate::{Results, Run};

/// Options of the schedules.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Number of schedules; their seeds follow each other.
    #[arg(long, default_value_t = 100)]
    pub schedules: u64,
    /// Runs only the schedule of this seed, and prints every request with its faults. Keeps no results.
    #[arg(long, value_name = "SEED")]
    pub only_seed: Option<u64>,
    /// Number of stages between installation and uninstallation.
    #[arg(long, default_value_t = 2)]
    pub changes: u32,
    /// Longest time in seconds from the last fault of a stage until the cluster is in its state.
    #[arg(long, default_value_t = 60)]
    pub limit: u64,
    /// Time in milliseconds without a write that counts as rest.
    #[arg(long, default_value_t = 1000)]
    pub quiet: u64,
    /// Starts no schedule after this number of seconds.
    #[arg(long, value_name = "SECONDS")]
    pub limit_seconds: Option<u64>,
    /// Directory for the traces of broken schedules: every request with its faults, the objects, and the controller's log.
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    /// Serves old lists also for consistent reads, which breaks the contract of the API.
    #[arg(long)]
    pub stale_reads: bool,
    /// Adds the figures of another implementation's report to this one. Repeatable.
    #[arg(long, value_name = "NAME=FILE")]
    pub beside: Vec<String>,
}

/// State that the workers share.
struct Shared<'a> {
    run: &'a Run,
    options: &'a Options,
    queue: Queue,
    results: Mutex<Results>,
}

/// Runs the schedules and returns their report. Prints one line per schedule to stderr.
///
/// # Errors
/// The environment fails. Violations are no errors but part of the report.
pub async fn run(run: &Run, options: &Options) -> Result<Report> {
    let Options {
        changes,
        limit,
        quiet,
        stale_reads,
        ..
    } = *options;
    let settings = format!("{changes} changes, limit {limit} s, quiet {quiet} ms, stale reads {stale_reads}");
    let rows: Vec<_> = options
        .beside
        .iter()
        .map(|given| figures::beside(given))
        .collect::<Result<_>>()?;
    let path = run.report.clone().filter(|_| options.only_seed.is_none());
    let old = if stale_reads { " --stale-reads" } else { "" };
    let command = format!(
        "faults proxy --schedules {} --seed {}{old}",
        options.schedules, run.seed
    );
    let results = run
        .results(path, &settings, figures::describe)
        .with_figures(rows.concat())
        .with_command(command);
    let seeds: Vec<u64> = match options.only_seed {
        Some(only) => vec![only],
        None => (run.seed..run.seed.saturating_add(options.schedules))
            .filter(|seed| !results.has(figures::SERIES, *seed))
            .collect(),
    };
    let workers = run.workers.min(seeds.len());
    let queue = Queue::new(seeds, options.limit_seconds.map(Duration::from_secs));
    let shared = Shared {
        run,
        options,
        queue,
        results: Mutex::new(results),
    };
    pool::run(workers, || work(&shared)).await?;
    shared.results.lock().save()
}

/// Runs schedules until none is left. After a schedule with violations, the next one gets a new environment, so that it does not
/// suffer.
async fn work(shared: &Shared<'_>) -> Result<()> {
    let mut place = None;
    while let Some(seed) = shared.queue.take() {
        let (mut world, mut judge) = match place.take() {
            Some(place) => place,
            None => shared.run.start().await?,
        };
        if shared.options.stale_reads {
            world.proxy.break_list_contract();
        }
        world.proxy.injector().start_log();
        let mut tally = Tally::default();
        let (run, options) = (shared.run, shared.options);
        let done = schedule::run(&mut world, &mut judge, (run, options), seed, &mut tally).await;
        let violations = done.unwrap_or_else(|error| {
            eprintln!("seed {seed}: the environment fails: {error:#}");
            vec![violation("environment", seed, format!("{error:#}"))]
        });
        if options.only_seed.is_some() {
            for line in world.proxy.injector().take_log() {
                eprintln!("{line}");
            }
        }
        count(&mut tally, seed, &violations);
        let (requests, faults) = world.take_counts();
        tally.add("requests", requests);
        for (name, count) in faults {
            tally.add(&format!("{}{name}", figures::FAULT), count);
        }
        let (changes, by_controller) = judge.take_counts();
        tally.add("changes", changes);
        tally.add("changes by the controller", by_controller);
        if violations.is_empty() {
            place = Some((world, judge));
        }
        shared.results.lock().add(&tally, violations)?;
    }
    Ok(())
}

/// Adds a schedule and its violations to the sums.
fn count(tally: &mut Tally, seed: u64, violations: &[Violation]) {
    tally.end(figures::SERIES, seed);
    tally.add("broken", u64::from(!violations.is_empty()));
    tally.add("violations", u64::try_from(violations.len()).unwrap_or(u64::MAX));
}

fn violation(invariant: &str, seed: u64, text: String) -> Violation {
    Violation {
        invariant: invariant.to_owned(),
        seed: seed.to_string(),
        text,
    }
}
