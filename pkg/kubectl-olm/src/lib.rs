//! `kubectl olm`: questions about catalogs, asked of a directory, an image, a catalogd or a cluster.
//!
//! A command gathers what it needs through [`source`], lets the pure crates decide, and returns one
//! [`Report`]: a value for programs and a text for people. Nothing but this file writes to standard output.
//! Nothing here changes a cluster. Exit codes: 0 yes, 1 a negative answer, 2 usage, 3 could not ask.

mod absent;
mod advice;
mod classic;
mod cli;
mod commands;
mod failure;
mod graph;
mod installed;
mod phrase;
mod question;
mod relevance;
mod report;
mod source;
mod spec_range;
mod style;
mod table;
mod wish;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::bundle::ConfigCommand;
use crate::cli::{Cli, ClusterUpgrade, Command, Format};
use crate::failure::Failure;
use crate::report::Report;
use crate::style::Style;

/// Runs the command of a command line, whose first argument is the program's name, and returns its exit code.
/// The TLS provider must be installed.
pub async fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error, &args),
    };
    let format = cli.output;
    let style = Style::of_stdout(format);
    match Box::pin(answer(cli.command, format, style)).await {
        Ok(report) => write(&report, format, u8::from(!report.positive)),
        Err(failure) => {
            say(&format!("error: {}", failure.message()));
            fail(&failure, format)
        }
    }
}

/// Prints what clap has to say: help, or how the command line is wrong.
fn unparsed(error: &clap::Error, args: &[OsString]) -> ExitCode {
    // There is nobody to tell that the streams are gone.
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let paragraph = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let message = words.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message).to_owned();
    let args = args.iter().map(|arg| arg.to_string_lossy().into_owned());
    fail(&Failure::Usage(message), Format::asked(args))
}

/// Gives programs the failure where they look for the answer.
fn fail(failure: &Failure, format: Format) -> ExitCode {
    let report = Report::new(failure.value(), String::new());
    write(&report, format, failure.code())
}

async fn answer(command: Command, format: Format, style: Style) -> Result<Report, Failure> {
    match command {
        Command::Search(args) => commands::search::run(args, style).await,
        Command::Show(args) if args.config_schema => {
            commands::config::schema(args.package, args.config).await
        }
        Command::Show(args) => commands::show::run(args.package, style).await,
        Command::Versions(args) => commands::versions::run(args, style).await,
        Command::Resolve(args) => commands::resolve::run(args, style).await,
        Command::Why(args) => commands::why::run(args, style).await,
        Command::Graph(args) => commands::graph::run(args, format, style).await,
        Command::Validate(args) => commands::validate::run(&args, style),
        Command::Range(args) => commands::range::run(&args, style),
        Command::Diff(args) => commands::diff::run(args, style).await,
        Command::Bundle(command) => commands::bundle::run(command, style).await,
        Command::Config(ConfigCommand::Init(args)) => commands::config::init(args).await,
        Command::Get(args) => commands::extension::get(args.access, style).await,
        Command::Status(args) => commands::extension::status(args, style).await,
        Command::History(args) => commands::extension::history(args, style).await,
        Command::Events(args) => commands::extension::events(args, style).await,
        Command::Tree(args) => commands::tree::run(args, style).await,
        Command::ClusterUpgrade(ClusterUpgrade::Check(args)) => {
            commands::cluster_upgrade::check(args, style).await
        }
        Command::CrdSafety(args) => commands::crd_safety::run(args, style).await,
        Command::Completion(args) => Ok(commands::completion::run(&args)),
    }
}

/// Writes to standard output, and gives `code` when that worked.
fn write(report: &Report, format: Format, code: u8) -> ExitCode {
    match print(report, format) {
        Ok(()) => ExitCode::from(code),
        // Whoever reads has seen enough, as with `| head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe && code < 2 => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: cannot write the answer: {error}"));
            ExitCode::from(3)
        }
    }
}

fn print(report: &Report, format: Format) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        Format::Table => out.write_all(report.text.as_bytes())?,
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &report.value)?;
            out.write_all(b"\n")?;
        }
        Format::Yaml => {
            out.write_all(report.yaml()?.as_bytes())?;
        }
    }
    out.flush()
}

/// A note for the person at the terminal; standard output is for the answer.
fn say(text: &str) {
    // There is nobody to tell that standard error is gone.
    let _ = writeln!(io::stderr().lock(), "{}", table::clean(text));
}
