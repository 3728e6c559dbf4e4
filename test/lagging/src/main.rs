//! Every single fault of the simulation again, while watches lag: the part `lagging` of `cargo xtask prove`.
//!
//! The exploration of `test/simulation` tries every single fault of every call with watches that show each event at once. Here each
//! watch keeps up to one, two or three events back, so that the controllers act on a former state of the cluster when the fault
//! happens.

mod jobs;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use olm_proof::{Progress, Report};
use olm_simulation::{Stage, scenarios, watch_panics};

/// A run allocates and frees more than it computes: a quarter of its time with the allocator of the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Tries every single fault while watches lag.
#[derive(Debug, Parser)]
struct Cli {
    /// Time to spend. The runs without a fault, about a hundred, come before and are not limited.
    #[arg(long, default_value_t = 60)]
    limit_seconds: u64,
    /// File for the report. If it has runs of the same code, they are not repeated.
    #[arg(long)]
    report: PathBuf,
    /// Digest of the code under test, which `cargo xtask prove` computes. Without it, every run is repeated.
    #[arg(long, value_name = "DIGEST", default_value = "")]
    code: String,
}

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    watch_panics();
    let earlier = if cli.report.exists() {
        serde_json::from_value(Report::read(&cli.report)?.state).ok()
    } else {
        None
    };
    let (progress, said) = Progress::continued(earlier, &cli.code);
    eprintln!("{said}");
    let limit = Duration::from_secs(cli.limit_seconds);
    let report = run::all(&Stage::new()?, &scenarios(), limit, progress)?;
    report.write(&cli.report)?;
    Ok(if report.violations.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
