//! Explores the controllers in simulation; `simulate --help` lists the commands.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use olm_proof::Report;
use olm_simulation::{
    Ending, Extent, Scenario, Schedule, Stage, explore, find_planted, hunt, pairs, real_pairs, scenarios,
    watch_panics,
};
use tracing_subscriber::EnvFilter;

/// A run allocates and frees more than it computes: a quarter of its time with the allocator of the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the production controllers on a simulated API server, with faults.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Explores faults, lag and deposed leaders.
    Explore {
        /// Scenario to explore; without it, all scenarios.
        #[arg(long)]
        scenario: Option<String>,
        /// Percent of the time that the single faults may take; the others share the rest.
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=100))]
        single_faults: u32,
        /// Digest of the code under test, which `cargo xtask prove` computes: runs of the same code that are in the report are not
        /// repeated. Without it, every exploration starts anew.
        #[arg(long, value_name = "DIGEST", default_value = "")]
        code: String,
        #[command(flatten)]
        common: Common,
    },
    /// Goes from spec to spec.
    Pairs {
        #[command(flatten)]
        common: Common,
    },
    /// Goes from spec to spec on a real API server.
    RealPairs {
        /// Number of pairs.
        #[arg(long, default_value_t = 300)]
        pairs: usize,
        #[command(flatten)]
        common: Common,
    },
    /// Looks for the planted bugs.
    Planted {
        #[command(flatten)]
        common: Common,
    },
    /// Looks for the first violation, and fails if there is one.
    Hunt {
        /// Scenario to hunt in; without it, all scenarios.
        #[arg(long)]
        scenario: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Repeats a run and prints its trace. The arguments are a scenario and a schedule, as reports name them.
    Replay {
        /// Scenario, and words NAME=VALUE of the schedule.
        #[arg(required = true)]
        schedule: Vec<String>,
    },
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Seed of all random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Time to spend.
    #[arg(long, default_value_t = 60)]
    limit_seconds: u64,
    /// File for the report; without it, standard output.
    #[arg(long)]
    report: Option<PathBuf>,
}

fn main() -> anyhow::Result<ExitCode> {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("off,olm_simulation=info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    watch_panics();
    let stage = Stage::new()?;
    match Cli::parse().command {
        Command::Explore {
            scenario,
            single_faults,
            code,
            common,
        } => {
            let extent = Extent {
                seed: common.seed,
                limit: Duration::from_secs(common.limit_seconds),
                single_faults,
                scenario,
                code,
            };
            let path = common.report.as_ref().filter(|path| path.exists());
            let earlier = path.map(|path| Report::read(path)).transpose()?;
            finish(&explore(&stage, &extent, earlier.as_ref()), &common)
        }
        Command::Pairs { common } => {
            let limit = Duration::from_secs(common.limit_seconds);
            finish(&pairs(&stage, common.seed, limit), &common)
        }
        Command::RealPairs { pairs: count, common } => {
            let runtime = tokio::runtime::Runtime::new()?;
            let report = runtime.block_on(real_pairs(&stage, common.seed, count))?;
            finish(&report, &common)
        }
        Command::Planted { common } => {
            let limit = Duration::from_secs(common.limit_seconds);
            finish(&find_planted(&stage, common.seed, limit), &common)
        }
        Command::Hunt { scenario, common } => {
            let scenarios = match &scenario {
                Some(name) => vec![find(name)?],
                None => scenarios(),
            };
            let limit = Duration::from_secs(common.limit_seconds);
            finish(&hunt(&stage, &scenarios, common.seed, limit), &common)
        }
        Command::Replay { schedule } => replay(&stage, &schedule),
    }
}

fn finish(report: &Report, common: &Common) -> anyhow::Result<ExitCode> {
    match &common.report {
        Some(path) => report.write(path)?,
        None => serde_json::to_writer_pretty(std::io::stdout(), report)?,
    }
    Ok(if report.violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn find(name: &str) -> anyhow::Result<Scenario> {
    let found = scenarios().into_iter().find(|scenario| scenario.name == name);
    found.with_context(|| format!("there is no scenario {name:?}"))
}

fn replay(stage: &Stage, words: &[String]) -> anyhow::Result<ExitCode> {
    let text = words.join(" ");
    let (name, schedule) = text.split_once(' ').unwrap_or((&text, ""));
    let scenario = find(name)?;
    let schedule: Schedule = schedule.parse().map_err(anyhow::Error::msg)?;
    let outcome = stage.run(&scenario, &schedule, Ending::Short, true)?;
    let mut out = std::io::stdout().lock();
    for line in &outcome.trace {
        use std::io::Write as _;
        writeln!(out, "{line}")?;
    }
    Ok(if outcome.violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
