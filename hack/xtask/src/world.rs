//! `cargo xtask world`: runs the comparison of the simulated API server of `test/world` with kube-apiserver.

use std::path::{PathBuf, absolute};

use crate::code::{self, Checkout};
use crate::prove;
use crate::shell::{self, cargo};

/// Arguments of the comparison.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of random sequences of requests.
    #[arg(long, default_value_t = 100_000)]
    sequences: u64,
    /// Seed of the first sequence; the others have the numbers that follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// File for the report, as JSON, written every thousand sequences. If it has results of the same code, only the sequences run that
    /// it lacks or that differed.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Digest of the code that is compared; without it, that of the checkout.
    #[arg(long, value_name = "DIGEST")]
    code: Option<String>,
}

/// Runs the comparison in the profile `proof`, which is optimised.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let code = match &args.code {
        Some(code) => code.clone(),
        None => code::sum(prove::part("world")?.digests(&Checkout::read()?)?),
    };
    let mut command = cargo();
    command.args([
        "test",
        "--profile",
        "proof",
        "--quiet",
        "--package",
        "olm-world",
        "--test",
        "differential",
        "--",
    ]);
    command.args([
        "--sequences",
        &args.sequences.to_string(),
        "--seed",
        &args.seed.to_string(),
        "--code",
        &code,
    ]);
    if let Some(report) = &args.report {
        // The test runs in the folder of its crate, so a relative path would have another meaning.
        command.arg("--report").arg(absolute(report)?);
    }
    shell::run(&mut command)
}
