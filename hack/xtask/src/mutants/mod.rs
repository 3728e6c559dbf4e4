//! `cargo xtask mutants`: the tests of the deciding crates against small changes of their code, by cargo-mutants.
//!
//! Each crate is tested by its own tests alone, without a cluster. `.cargo/mutants.toml` lists the mutants that are left out, each with
//! the reason why no test can catch it.

mod results;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use olm_proof::{Report, Violation};

use self::results::{Outcome, Results};
use crate::shell::{self, cargo};

/// The release of cargo-mutants that the message names if there is none.
const CARGO_MUTANTS: &str = "cargo-mutants@27.1.0";
/// Least share of the viable mutants that tests must catch, in percent.
const GOAL: usize = 95;
/// Longest run of a crate's tests, in seconds; a mutant that loops forever counts as caught.
const TIMEOUT: &str = "120";

/// Files of a crate whose mutants are run.
struct Group {
    name: &'static str,
    package: &'static str,
    /// Globs of files; all files of the package if empty.
    files: &'static [&'static str],
    /// Arguments of `cargo test` that choose the crate's own tests.
    tests: &'static [&'static str],
}

/// The smallest and purest come first.
const GROUPS: [Group; 6] = [
    Group {
        name: "applier",
        package: "olm-applier",
        files: &[
            "pkg/applier/src/ownership.rs",
            "pkg/applier/src/probe.rs",
            "pkg/applier/src/probe/*.rs",
        ],
        tests: &["--lib"],
    },
    Group {
        name: "status",
        package: "olm-status",
        files: &[],
        tests: &["--lib"],
    },
    Group {
        name: "plan",
        package: "olm-plan",
        files: &[],
        tests: &["--lib"],
    },
    Group {
        name: "resolve",
        package: "olm-resolve",
        files: &[],
        tests: &["--tests"],
    },
    Group {
        name: "object-set",
        package: "olm-operator-controller",
        files: &["pkg/operator-controller/src/cluster_object_set/decide.rs"],
        tests: &["--lib"],
    },
    Group {
        name: "extension",
        package: "olm-operator-controller",
        files: &["pkg/operator-controller/src/cluster_extension/decide/**/*.rs"],
        tests: &["--lib"],
    },
];

/// Arguments of `cargo xtask mutants`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only this group; repeatable.
    #[arg(long, value_name = "GROUP", value_parser = GROUPS.map(|group| group.name))]
    only: Vec<String>,
    /// Run nothing; report what is listed, and the results of earlier runs.
    #[arg(long)]
    list: bool,
    /// Keep the results of earlier runs, and run only mutants that no test caught yet.
    #[arg(long)]
    iterate: bool,
    /// Run only a part of the mutants, such as 2/8.
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
    /// Folder of results; by default `mutants` in cargo's target directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the result as JSON to this file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Group {
    /// Returns the call of cargo-mutants for the files of the group.
    fn command(&self) -> Command {
        let mut command = cargo();
        command.args(["mutants", "--package", self.package]);
        for file in self.files {
            command.args(["--file", file]);
        }
        command
    }

    /// Returns the names of all mutants.
    fn list(&self) -> anyhow::Result<BTreeSet<String>> {
        let listed = shell::output(self.command().arg("--list"))?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// Runs the mutants; survivors are no error.
    fn run(&self, args: &Args, out: &Path) -> anyhow::Result<()> {
        let mut command = self.command();
        command
            .args([
                "--jobs",
                "1",
                "--no-times",
                "--colors",
                "never",
                "--timeout",
                TIMEOUT,
            ])
            .arg("--output")
            .arg(out)
            // Only one crate is built anew for each mutant.
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_TARGET_DIR", shell::target_dir().join("mutants/build"));
        if args.iterate {
            command.arg("--iterate");
        }
        if let Some(shard) = &args.shard {
            command.args(["--shard", shard]);
        }
        command.arg("--").args(self.tests);
        let status = command.status().context("cannot start cargo-mutants")?;
        // 2: mutants survive, 3: tests time out.
        match status.code() {
            Some(0 | 2 | 3) => Ok(()),
            _ => bail!("cargo-mutants failed for {}: {status}", self.package),
        }
    }
}

/// Runs the selected groups.
///
/// # Errors
/// cargo-mutants is missing, a baseline fails, or tests catch too few mutants of a group.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if shell::output(cargo().args(["mutants", "--help"])).is_err() {
        bail!("cargo-mutants is missing. Install it: `cargo install --locked {CARGO_MUTANTS}`");
    }
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| shell::target_dir().join("mutants"));
    let mut groups = Vec::new();
    for group in &GROUPS {
        if !args.only.is_empty() && !args.only.iter().any(|only| only == group.name) {
            continue;
        }
        let folder = out.join(group.name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let mut results = if args.list || args.iterate {
            Results::read(&folder)?
        } else {
            Results::default()
        };
        if !args.list {
            group.run(args, &folder)?;
        }
        results.merge(&folder)?;
        results.retain(&group.list()?);
        results.write(&folder)?;
        groups.push((group.name, results));
    }
    let report = report(&groups, args);
    print(&report);
    if let Some(path) = &args.report {
        report
            .write(path)
            .with_context(|| format!("cannot write the report {}", path.display()))?;
    }
    let weak: Vec<&str> = report
        .violations
        .iter()
        .map(|violation| violation.text.as_str())
        .collect();
    ensure!(weak.is_empty(), "{}", weak.join(" "));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the totals are this chore's result")]
fn print(report: &Report) {
    for (what, figure) in &report.figures {
        println!("{what}: {figure}");
    }
    for survivor in &report.not_covered {
        println!("{survivor}");
    }
}

fn report(groups: &[(&str, Results)], args: &Args) -> Report {
    let only = args.only.iter().map(|only| format!(" --only {only}"));
    let mut report = Report {
        title: "Mutants".to_owned(),
        about: format!(
            "cargo-mutants changes the code that decides, one place at a time: ownership, probes, status, plans, resolution, and what the \
             controllers do next. The crate's own tests must catch at least {GOAL} % of the mutants that compile."
        ),
        command: format!("cargo xtask mutants{}", only.collect::<String>()),
        ..Report::default()
    };
    let mut all = Results::default();
    for (name, results) in groups {
        report.figures.push(((*name).to_owned(), results.figure()));
        if let Some(share) = results.share().filter(|share| *share < GOAL) {
            report.violations.push(Violation {
                invariant: "mutants".to_owned(),
                seed: (*name).to_owned(),
                text: format!("Tests catch only {share} % of the mutants of {name} that ran."),
            });
        }
        for survivor in results.with(Outcome::Missed) {
            report.not_covered.push(format!("No test catches: {survivor}"));
        }
        if results.not_run() > 0 {
            report.not_covered.push(format!(
                "{} of {} mutants of {name} did not run.",
                results.not_run(),
                results.total()
            ));
        }
        all.add(results);
    }
    report.figures.push(("all".to_owned(), all.figure()));
    report
}
