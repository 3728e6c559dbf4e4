//! `cargo xtask demo`: see [`olm_harness::demo`].

use std::process::ExitCode;

use clap::Parser;
use olm_harness::demo::{Args, Console, run};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let console = Console::default();
    match run(&args, &console, interrupted()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nthe demo failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Completes at Ctrl-C or SIGTERM.
async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
