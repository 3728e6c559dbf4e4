//! catalogd: serves the content of every ClusterCatalog.

use std::{io::Write, process::ExitCode};

use clap::Parser;
use olm_catalogd::Args;
use olm_runtime::{Binary, args::command_line, memory::Jemalloc};

/// Gives freed memory back to the system; see docs/benchmarks.md.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    olm_runtime::tls::install_provider();
    let args = Args::parse_from(command_line(std::env::args_os()));
    if let Some(command) = args.command {
        return command.run(Binary::Catalogd);
    }
    match start(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "catalogd: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(args: Args) -> anyhow::Result<()> {
    olm_runtime::telemetry::init(&args.common)?;
    olm_runtime::memory::purge_at_rest();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(olm_runtime::memory::IDLE_THREAD)
        .build()?
        .block_on(olm_catalogd::run(args))
}
