//! `cargo xtask attack`: all attacks against the binaries in `OLM_BIN_DIR`.

use std::process::ExitCode;

use clap::Parser;
use olm_attack::{MemoryLimits, Scale, Selection};

#[derive(Parser)]
#[command(about = "Attacks both controllers and prints outcomes and peaks of memory")]
struct Args {
    /// Number and size of the attacks.
    #[arg(long, value_enum, default_value = "full")]
    scale: Scale,
    /// Performs only attacks whose `class/name` starts with this text, for example `catalogs/json`; repeatable.
    #[arg(long, value_name = "PREFIX")]
    only: Vec<String>,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the table is the result")]
async fn main() -> ExitCode {
    let Args { scale, only } = Args::parse();
    let limits = (scale == Scale::Full).then_some(MemoryLimits::FULL);
    let checked = match Box::pin(olm_attack::run(scale, limits, &Selection(only))).await {
        Ok(report) => {
            println!("{report}");
            report.check()
        }
        Err(error) => Err(error),
    };
    match checked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
