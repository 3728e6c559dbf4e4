//! Page about the flags of the three programs.

use std::fmt::Write as _;

use anyhow::Result;
use clap::{Arg, ArgAction, Command, CommandFactory as _};

use crate::{code, head, row, table, upstream};

pub(crate) fn page() -> Result<String> {
    let mut page = head(
        "Flags",
        "Flags of the three programs. The last occurrence of a flag wins, except for repeatable flags. Flags marked *ours* do not \
         exist upstream; names and defaults of all others are upstream's. [operations.md](../operations.md) explains their use.",
    );
    let (catalogd, operator) = (
        olm_catalogd::Args::command(),
        olm_operator_controller::Args::command(),
    );
    let shared = |arg: &Arg| has(&catalogd, arg) && has(&operator, arg);
    page += &controller("Both controllers", &catalogd, shared, &upstream::COMMON)?;
    page += &controller("catalogd", &catalogd, |arg| !shared(arg), &upstream::CATALOGD)?;
    page += &controller(
        "operator-controller",
        &operator,
        |arg| !shared(arg),
        &upstream::OPERATOR_CONTROLLER,
    )?;
    page += "\n## kubectl olm\n\nEvery subcommand also has `--output` (`-o`).\n";
    let mut kubectl = olm_kubectl::command();
    kubectl.build();
    let source = source_flags(&kubectl);
    page += "\n### Sources of catalogs\n\n";
    page += &table(&["flag", "default", "meaning"]);
    for arg in &source {
        page += &argument(arg)?;
    }
    for sub in kubectl.get_subcommands() {
        command(&mut page, "kubectl olm", sub, &source)?;
    }
    Ok(page)
}

/// Returns true if the command has the flag, with the same meaning.
fn has(command: &Command, arg: &Arg) -> bool {
    command
        .get_arguments()
        .any(|other| other.get_long() == arg.get_long() && other.get_help() == arg.get_help())
}

fn controller(
    title: &str,
    command: &Command,
    wanted: impl Fn(&Arg) -> bool,
    upstream: &[&str],
) -> Result<String> {
    let mut section = format!("\n## {title}\n\n");
    section += &table(&["flag", "default", "meaning"]);
    for arg in visible(command).filter(|arg| wanted(arg)) {
        let known = arg.get_long().is_some_and(|long| upstream.contains(&long));
        let ours = if known { "" } else { "*ours*: " };
        section += &row(&[&name(arg), &default(arg), &format!("{ours}{}", help(arg)?)]);
    }
    let ignored: Vec<String> = command
        .get_arguments()
        .filter(|arg| arg.is_hide_set() && wanted(arg))
        .filter_map(Arg::get_long)
        .map(|long| format!("`--{long}`"))
        .collect();
    if !ignored.is_empty() {
        writeln!(section, "\nAccepted without effect: {}.", ignored.join(", "))?;
    }
    Ok(section)
}

/// Returns the flags that name sources of catalogs, which many subcommands share.
fn source_flags(kubectl: &Command) -> Vec<&Arg> {
    kubectl
        .find_subcommand("search")
        .into_iter()
        .flat_map(visible)
        .filter(|arg| arg.get_help_heading().is_some())
        .collect()
}

/// Appends a subcommand and the subcommands below it.
fn command(page: &mut String, parent: &str, this: &Command, source: &[&Arg]) -> Result<()> {
    let path = format!("{parent} {}", this.get_name());
    if this.get_name() == "help" {
        return Ok(());
    }
    write!(page, "\n### {path}\n\n")?;
    if let Some(about) = this.get_about() {
        writeln!(page, "{about}.")?;
    }
    let mut args: Vec<&Arg> = visible(this).filter(|arg| !arg.is_global_set()).collect();
    if source.iter().all(|flag| has(this, flag)) {
        *page += "\nTakes the flags of [Sources of catalogs](#sources-of-catalogs).\n";
        args.retain(|arg| !source.iter().any(|flag| flag.get_long() == arg.get_long()));
    }
    if !args.is_empty() {
        *page += "\n";
        *page += &table(&["argument", "default", "meaning"]);
        for arg in args {
            *page += &argument(arg)?;
        }
    }
    for sub in this.get_subcommands() {
        command(page, &path, sub, source)?;
    }
    Ok(())
}

/// Returns the row of an argument in a table.
fn argument(arg: &Arg) -> Result<String> {
    Ok(row(&[&name(arg), &default(arg), &help(arg)?]))
}

fn visible(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version"))
}

/// Returns the flag with the name of its value, or the name of a positional argument.
fn name(arg: &Arg) -> String {
    let takes_value =
        arg.get_action().takes_values() && arg.get_num_args().is_none_or(|range| range.min_values() > 0);
    let value = arg
        .get_value_names()
        .and_then(|names| names.first())
        .map(ToString::to_string);
    let (Some(long), value) = (arg.get_long(), value) else {
        return code(&arg.get_id().as_str().to_uppercase());
    };
    let short = arg
        .get_short()
        .map(|short| format!("`-{short}`, "))
        .unwrap_or_default();
    match value.filter(|_| takes_value) {
        Some(value) => format!("{short}`--{long} {value}`"),
        None => format!("{short}`--{long}`"),
    }
}

fn default(arg: &Arg) -> String {
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return String::new();
    }
    let values: Vec<String> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    code(&values.join(","))
}

/// Returns the help text of an argument, with the possible values.
fn help(arg: &Arg) -> Result<String> {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let mut help = help.map(ToString::to_string).unwrap_or_default();
    if !help.ends_with('.') {
        help.push('.');
    }
    if arg.get_action().takes_values() {
        let values: Vec<String> = arg
            .get_possible_values()
            .iter()
            .filter(|value| !matches!(value.get_name(), "true" | "false"))
            .map(|value| code(value.get_name()))
            .collect();
        if !values.is_empty() {
            write!(help, " Values: {}.", values.join(", "))?;
        }
    }
    if arg.get_value_delimiter() == Some(',') {
        help += " Comma-separated.";
    } else if matches!(arg.get_action(), ArgAction::Append) && !help.contains("repeat") {
        help += " May be repeated.";
    }
    Ok(help)
}
