//! Schedules of faults: a chain of stages each, with convergence and invariants after every stage.

mod figures;
mod plan;
mod step;
mod trace;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use olm_proof::{Report, Violation};
use tokio::time::Instant;

pub use figures::Figures;
pub use plan::{Step, steps};

use crate::scenario::Promises;
use crate::{Commands, Judge, Scenario, World};

/// Options of the schedules.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Number of schedules; their seeds follow each other.
    #[arg(long, default_value_t = 100)]
    pub schedules: u64,
    /// Runs only the schedule of this seed, and prints every request with its faults.
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
    #[arg(long, value_name = "SECONDS", default_value_t = u64::MAX)]
    pub limit_seconds: u64,
    /// Directory for the traces of broken schedules: every request with its faults, the objects, and the controller's log.
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,
    /// Serves old lists also for consistent reads, which breaks the contract of the API.
    #[arg(long)]
    pub stale_reads: bool,
}

/// Runs the schedules and returns their report. Prints a line for each schedule to stderr.
///
/// # Errors
/// The environment fails; violations are in the report.
pub async fn run(commands: &Commands, options: &Options, seed: u64, promises: Promises) -> Result<Report> {
    let seeds: Vec<u64> = match options.only_seed {
        Some(only) => vec![only],
        None => (seed..).take(usize::try_from(options.schedules)?).collect(),
    };
    let mut world = World::start(commands).await?;
    let mut judge = Judge::start(&world.client(), world.ledger.clone(), promises).await?;
    if options.stale_reads {
        world.proxy.break_list_contract();
    }
    let mut figures = Figures::default();
    let started = Instant::now();
    for seed in seeds {
        if started.elapsed().as_secs() >= options.limit_seconds {
            break;
        }
        world.proxy.injector().start_log();
        if let Err(error) = schedule(&mut world, &mut judge, options, seed, promises, &mut figures).await {
            eprintln!("seed {seed}: the environment fails: {error:#}");
            figures.end_schedule(vec![violation("environment", seed, format!("{error:#}"))]);
        }
        if options.only_seed.is_some() {
            for line in world.proxy.injector().take_log() {
                eprintln!("{line}");
            }
        }
    }
    figures.note_totals(&world, &judge);
    Ok(figures.report(&format!(
        "faults proxy --schedules {} --seed {seed}",
        options.schedules
    )))
}

/// Runs one schedule.
async fn schedule(
    world: &mut World,
    judge: &mut Judge,
    options: &Options,
    seed: u64,
    promises: Promises,
    figures: &mut Figures,
) -> Result<()> {
    let client = world.client();
    // The pull of the catalog belongs to the first stage.
    if let Some(first) = steps(seed, options.changes).first() {
        world.registry_tunnel.set_faults(&first.registry);
    }
    let mut scenario = Scenario::publish(world, &format!("s{seed:x}"), promises).await?;
    let limits = step::Limits {
        converge: Duration::from_secs(options.limit),
        quiet: Duration::from_millis(options.quiet),
    };
    let mut line = format!("seed {seed}:");
    let mut violations = Vec::new();
    for (number, step) in steps(seed, options.changes).into_iter().enumerate() {
        let injector = world.proxy.injector();
        injector.note(&format!("STAGE {}, faults: {}", step.stage, step.faults()));
        if number > 0 {
            world.registry_tunnel.set_faults(&step.registry);
        }
        world.catalogd_tunnel.set_faults(&step.catalogd);
        let outcome = step::perform(world, &mut scenario, &step, limits).await?;
        figures.add(&outcome);
        let _ = write!(line, " {} {:.1} s,", step.stage, outcome.converged.as_secs_f64());
        if let Some(text) = outcome.failure {
            let text = format!("{}: {text}; faults: {}", step.stage, step.faults());
            violations.push(violation("convergence", seed, text));
            break;
        }
    }
    violations.extend(judge.violations(&seed.to_string()).await);
    if violations.is_empty() {
        eprintln!("{line} kept");
    } else {
        if let Some(dir) = &options.traces {
            trace::write(dir, seed, world, &scenario).await?;
        }
        // The next schedule must not suffer.
        world.controller.kill()?;
        world.proxy.open();
        world.controller.start().await?;
        let told = violations
            .iter()
            .map(|found| format!("\n  {}: {}", found.invariant, found.text));
        eprintln!("{line} BROKEN{}", told.collect::<String>());
    }
    figures.end_schedule(violations);
    scenario.retire(&client).await
}

fn violation(invariant: &str, seed: u64, text: String) -> Violation {
    Violation {
        invariant: invariant.to_owned(),
        seed: seed.to_string(),
        text,
    }
}
