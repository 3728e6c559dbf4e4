//! `completion`: a script for a shell.

use crate::cli::{Cli, CompletionArgs};
use crate::report::Report;
use clap::CommandFactory as _;

/// Returns the completion script of a shell.
pub(crate) fn run(args: &CompletionArgs) -> Report {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "kubectl-olm", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    Report::new(
        serde_json::json!({"shell": args.shell.to_string(), "script": text}),
        text,
    )
}
