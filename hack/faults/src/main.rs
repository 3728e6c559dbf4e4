//! Program `faults`: disturbs any implementation of the controllers on a real API server, and checks that it converges.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Args, Parser, Subcommand};
use olm_faults::scenario::Promises;
use olm_faults::{Commands, Programs, Run, moments, proxy_runs, surroundings};

#[derive(Parser)]
#[command(
    about = "Disturbs controllers on a real API server and checks that they converge and keep their promises"
)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    part: Part,
}

#[derive(Args)]
struct Common {
    /// Command line of the operator-controller under test; words are separated by spaces. `{kubeconfig}`, `{cache}`, `{health}`,
    /// `{metrics}`, `{content}`, `{registry}` and `{catalogd}` are replaced. By default, the program of this build or of `OLM_BIN_DIR`.
    #[arg(long, value_name = "CMD", global = true)]
    controller: Option<String>,
    /// Command line of catalogd, like `--controller`.
    #[arg(long, value_name = "CMD", global = true)]
    catalogd: Option<String>,
    /// Seed of the first schedule or moment.
    #[arg(long, default_value_t = 1, global = true)]
    seed: u64,
    /// Number of schedules or kills that run at the same time, each on a control plane of its own (about 0.6 GB of memory).
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..), global = true)]
    workers: u8,
    /// File for the report, as JSON, written after each case. With `--code`, results of the same code in it are kept, and only missing
    /// cases run.
    #[arg(long, value_name = "FILE", global = true)]
    report: Option<PathBuf>,
    /// Digest of the code under test, which `cargo xtask prove` computes. Without it, every run starts anew.
    #[arg(long, value_name = "DIGEST", default_value = "", global = true)]
    code: String,
    /// Facts to rely on: those of every implementation, or also those that only this project promises.
    #[arg(long, value_enum, default_value = "all", global = true)]
    invariants: Promises,
}

#[derive(Subcommand)]
enum Part {
    /// Schedules of faults between the controller and the API server.
    Proxy(proxy_runs::Options),
    /// `kill -9` of the controllers at random moments.
    Moments(moments::Options),
    /// Trouble of control plane, registries, disks and memory.
    Surroundings(surroundings::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { common, part } = Cli::parse();
    match Box::pin(run(common, part)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(common: Common, part: Part) -> Result<()> {
    let programs = Programs::find(&Commands {
        controller: common.controller,
        catalogd: common.catalogd,
    })
    .await?;
    let run = Run {
        workers: usize::from(common.workers),
        report: common.report,
        code: common.code,
        ..Run::new(programs, common.invariants, common.seed)
    };
    let report = match part {
        Part::Proxy(options) => Box::pin(proxy_runs::run(&run, &options)).await?,
        Part::Moments(options) => Box::pin(moments::run(&run, &options)).await?,
        Part::Surroundings(options) => Box::pin(surroundings::run(&run, &options)).await?,
    };
    let violations = report.violations.len();
    ensure!(violations == 0, "{violations} violations");
    Ok(())
}
