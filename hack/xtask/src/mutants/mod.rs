//! `cargo xtask mutants`: checks the tests of the crates that decide. cargo-mutants makes small changes of the code (mutants),
//! and the tests must catch them.
//!
//! Each mutant meets only its crate's own tests, without a cluster. If `.cargo/mutants.toml` exists, it lists the mutants to leave
//! out, with the reasons why no test can catch them.
//!
//! The report keeps the results, and a later run tries only the mutants without a result. A result holds while the code of the
//! crate and of the workspace's crates that it needs stays the same, and no test is removed. The mutants are tried in a copy of
//! the checkout, which stays for the next run together with its build.

mod group;
mod results;
mod state;

use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use olm_proof::{Report, Violation};

use self::group::{GROUPS, Group};
use self::results::{Names, Outcome, Results};
use self::state::{Basis, State};
use crate::code::Checkout;
use crate::prove::{Adding, Stamp};
use crate::shell::{self, cargo};

/// Release of cargo-mutants that the error message names if cargo-mutants is missing.
const CARGO_MUTANTS: &str = "cargo-mutants@27.1.0";
/// Minimum share of the viable mutants that the tests must catch, in percent. A viable mutant compiles.
const GOAL: usize = 95;
/// Interval between two writes of the report while mutants run.
const SAVE: Duration = Duration::from_secs(10);

/// Arguments of `cargo xtask mutants`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only this group; repeatable.
    #[arg(long, value_name = "GROUP", value_parser = GROUPS.map(|group| group.name))]
    only: Vec<String>,
    /// Run nothing; report the results of earlier runs.
    #[arg(long)]
    list: bool,
    /// Run only a part of the mutants that have no result yet, such as 2/8.
    #[arg(long, value_name = "K/N")]
    shard: Option<String>,
    /// Folder of the copy, its build and the logs; by default `mutants` in cargo's target directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    adding: Adding,
}

/// A run of the chore: its folders, and the results so far.
struct Run<'a> {
    args: &'a Args,
    /// Folder of the copy, its build and the logs.
    out: PathBuf,
    /// The copy of the checkout.
    tree: PathBuf,
    state: State,
    stamp: Stamp,
}

/// Runs the selected groups.
///
/// # Errors
/// cargo-mutants is missing, the tests fail on the unchanged code, or they catch too few mutants of a group.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if shell::output(cargo().args(["mutants", "--help"])).is_err() {
        bail!("cargo-mutants is missing. Install it: `cargo install --locked {CARGO_MUTANTS}`");
    }
    let out = args
        .out
        .clone()
        .unwrap_or_else(|| shell::target_dir().join("mutants"));
    let checkout = Checkout::read()?;
    let (stamp, state) = Stamp::of_chore("mutants", &args.adding, args.only.is_empty(), &checkout)?;
    let mut run = Run {
        args,
        tree: out.join("tree"),
        out,
        state,
        stamp,
    };
    fs::create_dir_all(&run.tree).with_context(|| format!("cannot create {}", run.tree.display()))?;
    checkout.files.write(&run.tree)?;
    // The names of all groups are known before the first mutant runs, so that the report of a stopped run counts those that did not.
    let mut selected = Vec::new();
    for group in &GROUPS {
        let basis = Basis::of(group.package, &checkout)?;
        let names = Names::new(&group.list(&run.tree)?);
        let runs = !args.list && (args.only.is_empty() || args.only.iter().any(|only| only == group.name));
        if runs {
            run.state.renew(group.name, &basis, args.adding.anew);
        }
        run.state.settle(group.name, &basis, &names);
        if runs {
            selected.push((group, names));
        }
    }
    for (group, names) in selected {
        run.group(group, &names)?;
    }
    run.save()?;
    let report = run.report();
    print(&report);
    let weak: Vec<&str> = report
        .violations
        .iter()
        .map(|violation| violation.text.as_str())
        .collect();
    ensure!(weak.is_empty(), "{}", weak.join(" "));
    Ok(())
}

impl Run<'_> {
    /// Tries the mutants of a group that have no result. Survivors are no error here.
    fn group(&mut self, group: &Group, names: &Names) -> anyhow::Result<()> {
        let (folder, build) = (self.out.join(group.name), self.out.join("build"));
        for (at, tests) in group.tests.iter().enumerate() {
            let done = names.with_result(self.state.results(group.name));
            if done.len() == names.len() {
                return Ok(());
            }
            results::skip(&folder, &done)?;
            let mut command = group.run(tests, &self.tree, &folder, &build);
            if let Some(shard) = &self.args.shard {
                command.args(["--shard", shard]);
            }
            let child = command.spawn().context("cannot start cargo-mutants")?;
            let take = |results: &mut Results| results.merge(&folder, names, at + 1 == group.tests.len());
            self.watch(child, group.name, take)?;
        }
        Ok(())
    }

    /// Collects the results with `take` while cargo-mutants runs, so that a stopped run leaves its results in the report.
    fn watch(
        &mut self,
        mut child: Child,
        group: &str,
        take: impl Fn(&mut Results) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut saved = Instant::now();
        loop {
            let ended = child.try_wait()?;
            if ended.is_some() || saved.elapsed() > SAVE {
                take(self.state.results(group))?;
                self.save()?;
                saved = Instant::now();
            }
            match ended.map(|status| status.code()) {
                None => sleep(Duration::from_millis(200)),
                // Exit status 2 means that mutants survive, 3 that tests time out.
                Some(Some(0 | 2 | 3)) => return Ok(()),
                Some(_) => bail!(
                    "cargo-mutants failed for {group}; its logs are in {}",
                    self.out.display()
                ),
            }
        }
    }

    fn save(&self) -> anyhow::Result<()> {
        self.stamp
            .save(self.report(), &self.state, self.args.adding.report.as_deref())
    }

    fn report(&self) -> Report {
        let only = self.args.only.iter().map(|only| format!(" --only {only}"));
        let mut report = Report {
            title: "Mutants".to_owned(),
            about: format!(
                "cargo-mutants changes the code that decides, one place at a time: ownership, probes, status, plans, resolution, and what \
                 the controllers do next. The crate's own tests must catch at least {GOAL} % of the mutants that compile. Results of \
                 several runs add up while the code is the same and no test is gone."
            ),
            command: format!("cargo xtask mutants{}", only.collect::<String>()),
            ..Report::default()
        };
        let mut all = Results::default();
        for (name, results, is_old) in self.state.groups() {
            add(&mut report, name, results, is_old);
            all.add(results);
        }
        report.figures.push(("all".to_owned(), all.figure()));
        report
    }
}

/// Adds the results of a group to the report.
fn add(report: &mut Report, name: &str, results: &Results, is_old: bool) {
    let of = if is_old { ", of earlier code" } else { "" };
    report
        .figures
        .push((name.to_owned(), format!("{}{of}", results.figure())));
    if let Some(share) = results.share().filter(|share| *share < GOAL) {
        report.violations.push(Violation {
            invariant: "mutants".to_owned(),
            seed: name.to_owned(),
            text: format!("Tests catch only {share} % of the mutants of {name} that ran."),
        });
    }
    let survivors = results.with(Outcome::Missed);
    report
        .not_covered
        .extend(survivors.map(|survivor| format!("No test catches: {survivor}")));
    if results.not_run() > 0 {
        let (missing, total) = (results.not_run(), results.total());
        report
            .not_covered
            .push(format!("{missing} of {total} mutants of {name} did not run."));
    }
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
