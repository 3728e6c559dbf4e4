//! `operator-controller`: installs extensions.

use std::process::ExitCode;

use clap::Parser as _;
use olm_operator_controller::Args;
use olm_runtime::{
    Binary,
    args::command_line,
    memory::{self, Jemalloc},
};

/// Gives freed memory back to the system; see docs/benchmarks.md.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Maximum number of threads for blocking work: after a restart every extension asks for one at once. Work on these threads never
/// waits for work that has no thread yet.
const MAX_BLOCKING_THREADS: usize = 64;

fn main() -> ExitCode {
    olm_runtime::tls::install_provider();
    memory::purge_while_parsing();
    let args = Args::parse_from(command_line(std::env::args_os()));
    if let Some(command) = args.command {
        return command.run(Binary::OperatorController);
    }
    match start(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

fn start(args: Args) -> anyhow::Result<()> {
    olm_runtime::telemetry::init(&args.common)?;
    memory::purge_at_rest();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .thread_keep_alive(memory::IDLE_THREAD)
        .build()?
        .block_on(Box::pin(olm_operator_controller::run(args)))
}

/// Prints the error with its causes to standard error, beside the log.
#[expect(clippy::print_stderr, reason = "the log may be what could not be set up")]
fn report(error: &anyhow::Error) {
    eprintln!("operator-controller: {error:#}");
}
