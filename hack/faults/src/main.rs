//! `faults`: real faults for any implementation of the controllers.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use olm_faults::Commands;
use olm_faults::scenario::Promises;

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
    /// File for the report, as JSON.
    #[arg(long, value_name = "FILE", global = true)]
    report: Option<PathBuf>,
    /// Facts to rely on: those of every implementation, or also those that only this project promises.
    #[arg(long, value_enum, default_value = "all", global = true)]
    invariants: Promises,
}

#[derive(Subcommand)]
enum Part {
    /// Schedules of faults between the controller and the API server.
    Proxy(olm_faults::proxy_runs::Options),
    /// `kill -9` of the controllers at random moments.
    Moments(olm_faults::moments::Options),
    /// Trouble of control plane, registries, disks and memory.
    Surroundings(olm_faults::surroundings::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Cli { common, part } = Cli::parse();
    let commands = Commands {
        controller: common.controller,
        catalogd: common.catalogd,
    };
    let done = match part {
        Part::Proxy(options) => {
            Box::pin(olm_faults::proxy_runs::run(
                &commands,
                &options,
                common.seed,
                common.invariants,
            ))
            .await
        }
        Part::Moments(options) => {
            Box::pin(olm_faults::moments::run(
                &commands,
                &options,
                common.seed,
                common.invariants,
            ))
            .await
        }
        Part::Surroundings(options) => {
            Box::pin(olm_faults::surroundings::run(
                &commands,
                &options,
                common.seed,
                common.invariants,
            ))
            .await
        }
    };
    let checked = done.and_then(|report| {
        if let Some(path) = &common.report {
            report.write(path)?;
        }
        anyhow::ensure!(
            report.violations.is_empty(),
            "{} violations",
            report.violations.len()
        );
        Ok(())
    });
    match checked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
