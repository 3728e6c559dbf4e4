//! catalogd: serves the content of every ClusterCatalog.

use std::{io::Write, process::ExitCode};

use clap::Parser;
use olm_catalogd::{Args, Command};

fn main() -> ExitCode {
    olm_runtime::tls::install_provider();
    let args = Args::parse();
    if args.command == Some(Command::Version) {
        let written = writeln!(std::io::stdout(), "catalogd {}", env!("CARGO_PKG_VERSION"));
        return if written.is_ok() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
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
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(olm_catalogd::run(args))
}
