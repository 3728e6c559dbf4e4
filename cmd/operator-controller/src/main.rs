//! `operator-controller`: installs extensions.

use std::process::ExitCode;

use clap::Parser as _;
use olm_runtime::{Binary, args::command_line, memory::Jemalloc};

/// Gives freed memory back to the system; see docs/benchmarks.md.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

#[tokio::main]
async fn main() -> ExitCode {
    olm_runtime::tls::install_provider();
    olm_runtime::memory::purge_while_parsing();
    let args = olm_operator_controller::Args::parse_from(command_line(std::env::args_os()));
    if let Some(command) = args.command {
        return command.run(Binary::OperatorController);
    }
    if let Err(error) = olm_runtime::telemetry::init(&args.common) {
        report(&error.into());
        return ExitCode::FAILURE;
    }
    olm_runtime::memory::purge_at_rest();
    match Box::pin(olm_operator_controller::run(args)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Prints the error with its causes to standard error, beside the log.
#[expect(clippy::print_stderr, reason = "the log may be what could not be set up")]
fn report(error: &anyhow::Error) {
    eprintln!("operator-controller: {error:#}");
}
