//! `kubectl olm`: queries of catalogs in a directory, an image, catalogd or a cluster.
//!
//! A command reads its inputs through [`source`], calls the pure crates, and returns a [`Report`]: data for programs
//! and text for people. Only this module writes to standard output. Commands whose name says so, such as `install` and
//! `catalog add`, and `plan --approve`, change a cluster; all others only read. Exit codes: 0 positive answer, 1 negative
//! answer, 2 invalid usage, 3 a source cannot be read.

mod absent;
mod advice;
mod await_ready;
mod classic;
mod cli;
mod commands;
mod controllers;
mod doctor;
mod failure;
mod finding;
mod gates;
mod graph_text;
mod installed;
mod kept;
mod lifecycle;
mod manifests;
mod migration;
mod observed;
mod phrase;
mod plan_report;
mod removal;
mod report;
mod resolution_input;
mod resolve_report;
mod source;
mod spec_range;
mod style;
mod support;
mod table;
mod tenant;
mod ui;
mod unknown_version;
mod verdicts;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::cli::bundle::ConfigCommand;
use crate::cli::crd::CrdCommand;
use crate::cli::{Cli, ClusterUpgrade, Command, Format};
use crate::failure::Failure;
use crate::report::Report;
use crate::style::Style;

/// Runs the command and returns its exit code. The first of `args` is the program's name. The TLS provider must be
/// installed.
pub async fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error, &args),
    };
    let format = cli.output;
    let style = Style::of_stdout(format);
    match Box::pin(answer(cli.command, format, style)).await {
        Ok(report) => write(&report, format, report.code()),
        Err(failure) => {
            print_error(&format!("error: {}", failure.message()));
            fail(&failure, format)
        }
    }
}

/// Returns the command with its flags and subcommands.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Prints help, or clap's error about invalid arguments.
fn unparsed(error: &clap::Error, args: &[OsString]) -> ExitCode {
    // A failed write cannot be reported.
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

/// Writes the failure to standard output, for programs.
fn fail(failure: &Failure, format: Format) -> ExitCode {
    let report = Report::new(failure.value(), String::new());
    write(&report, format, failure.code())
}

async fn answer(command: Command, format: Format, style: Style) -> Result<Report, Failure> {
    if matches!(format, Format::Markdown | Format::Html) && !matches!(command, Command::Plan(_)) {
        return Err(Failure::Usage(
            "-o markdown and -o html are formats of plans: use -o table, json or yaml".to_owned(),
        ));
    }
    if format == Format::Wide && !matches!(command, Command::Get(_)) {
        return Err(Failure::Usage(
            "-o wide is a format of get: use -o table, json or yaml".to_owned(),
        ));
    }
    match command {
        Command::Plan(args) => Box::pin(commands::plan::run(*args, format, style)).await,
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
        Command::Site(args) => commands::site::run(args).await,
        Command::Ui(args) => commands::ui::run(args).await,
        Command::UiServer(args) => commands::ui_server::run(args).await,
        Command::Bundle(command) => commands::bundle::run(command, style).await,
        Command::Config(ConfigCommand::Init(args)) => commands::config::init(args).await,
        Command::Install(args) => commands::install::run(args, style).await,
        Command::Upgrade(args) => commands::upgrade::run(args, style).await,
        Command::Catalog(command) => commands::catalog::run(command, style).await,
        Command::Get(args) => commands::extension::get(args, format, style).await,
        Command::Status(args) => commands::extension::status(args, style).await,
        Command::History(args) => commands::extension::history(args, style).await,
        Command::Events(args) => commands::extension::events(args, style).await,
        Command::Tree(args) => commands::tree::run(args, style).await,
        Command::Delete(args) => commands::delete::run(args, style).await,
        Command::Rollback(args) => commands::rollback::run(args, format, style).await,
        Command::Approve(args) => commands::rollout::approve(args).await,
        Command::Pause(args) => commands::rollout::pause(args).await,
        Command::Resume(args) => commands::rollout::resume(args).await,
        Command::ClusterUpgrade(ClusterUpgrade::Check(args)) => {
            Box::pin(commands::cluster_upgrade::check(args, style)).await
        }
        Command::CrdSafety(args) => commands::crd_safety::run(args, style).await,
        Command::Crd(CrdCommand::Migrate(args)) => commands::crd_migrate::run(args).await,
        Command::InstallControllers(args) => commands::install_controllers::run(args, style).await,
        Command::UninstallControllers(args) => commands::uninstall_controllers::run(args, style).await,
        Command::Doctor(args) => commands::doctor::run(args, style).await,
        Command::SupportBundle(args) => commands::support_bundle::run(args).await,
        Command::Completion(args) => Ok(commands::completion::run(&args)),
    }
}

/// Writes the report to standard output; returns `code` on success.
fn write(report: &Report, format: Format, code: u8) -> ExitCode {
    match print(report, format) {
        Ok(()) => ExitCode::from(code),
        // The reader closed the pipe, as with `| head`: the answer is the same.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(code),
        Err(error) => {
            print_error(&format!("error: cannot write to standard output: {error}"));
            ExitCode::from(3)
        }
    }
}

fn print(report: &Report, format: Format) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        Format::Table | Format::Wide | Format::Markdown | Format::Html => {
            out.write_all(report.text.as_bytes())?;
        }
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

/// Writes a line to standard error.
fn print_error(text: &str) {
    // A failed write cannot be reported.
    let _ = writeln!(io::stderr().lock(), "{}", table::clean(text));
}
