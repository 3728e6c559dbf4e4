//! `cargo xtask fuzz`: runs the fuzz targets under libFuzzer.
//!
//! The fuzz crates, `pkg/*/fuzz`, are not part of the workspace, because sanitizers need a nightly toolchain. Each target has a
//! small corpus of seeds in `corpus/TARGET`, which the tests of the repository never read. A run works on a copy of the seeds.
//! With `--keep`, the inputs that the run found are minimised and become seeds.
//!
//! The report keeps the totals of each target. A later run adds to them while the code of the target, of its crate and of the
//! workspace's crates below it stays the same. The time of a target is processor time, so a run on a busy machine takes longer
//! but counts the same. New inputs stay beside the build; the repository has only the seeds.

mod corpus;
mod report;
mod slow;
mod stats;
mod totals;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, bail, ensure};
use parking_lot::Mutex;

use self::stats::Stats;
use self::totals::Totals;
use crate::code::{self, Checkout};
use crate::processors;
use crate::prove::{Adding, Stamp};
use crate::shell::{self, root};

/// Release of cargo-fuzz that the error message names if cargo-fuzz is missing.
const CARGO_FUZZ: &str = "cargo-fuzz@0.13.2";
/// Maximum size of an input, in bytes.
const MAX_LENGTH: usize = 4096;
/// Maximum time for one input, in seconds.
const TIMEOUT: u32 = 10;
/// Maximum resident memory of a target, in MiB.
const MEMORY: u32 = 2048;

/// Arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seconds of a processor for each target, together with those of earlier runs in the report.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Run only this target, CRATE/TARGET, or the targets of this crate. Repeatable.
    #[arg(long, value_name = "CRATE[/TARGET]")]
    only: Vec<String>,
    /// Targets that run at the same time.
    #[arg(long, default_value_t = NonZero::<usize>::MIN)]
    jobs: NonZero<usize>,
    /// Merge the inputs that were found into the seeds of the repository, minimised.
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    adding: Adding,
}

/// A fuzz target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    /// Folder of the crate below `pkg`.
    package: String,
    name: String,
}

impl Target {
    /// Returns `CRATE/TARGET`, the name of the target in options and reports.
    fn title(&self) -> String {
        format!("{}/{}", self.package, self.name)
    }

    /// Returns the folder of the fuzz crate.
    fn folder(&self) -> PathBuf {
        root().join("pkg").join(&self.package).join("fuzz")
    }

    /// Returns the digest of the code that the target covers.
    fn code(&self, checkout: &Checkout) -> anyhow::Result<String> {
        let mut covered = checkout
            .packages
            .closure(&format!("olm-{}", self.package), false)?;
        let fuzz = format!("pkg/{}/fuzz", self.package);
        covered.insert(format!("{fuzz}/src"));
        covered.insert(format!("{fuzz}/fuzz_targets/{}.rs", self.name));
        Ok(code::sum(code::digests(&checkout.files, &covered)))
    }

    /// Returns true if `only` selects the target; an empty list selects every target.
    fn is_selected(&self, only: &[String]) -> bool {
        only.is_empty()
            || only
                .iter()
                .any(|text| *text == self.package || *text == self.title())
    }

    /// Returns the call of the subcommand `chore` of cargo-fuzz, in the folder of the fuzzed crate.
    fn cargo_fuzz(&self, chore: &str) -> Command {
        let mut command = Command::new("cargo");
        // Otherwise, the toolchain of the workspace would take precedence over `+nightly`.
        command
            .env_remove("RUSTUP_TOOLCHAIN")
            .env("CARGO_TARGET_DIR", build_dir())
            .current_dir(self.folder().parent().unwrap_or(Path::new(".")))
            .args(["+nightly", "fuzz", chore]);
        command
    }
}

/// Result of one run of a target.
struct Ran {
    /// Processor time, in seconds.
    seconds: u64,
    stats: Stats,
    /// Paths, in the repository, of the inputs that broke the target.
    findings: Vec<String>,
}

/// A run of the chore: the totals so far, the crates that are built, and the targets that are running.
struct Run<'a> {
    args: &'a Args,
    totals: Totals,
    stamp: Stamp,
    /// Crates whose targets are built.
    built: BTreeSet<String>,
    /// Titles of the targets that are running.
    busy: BTreeSet<String>,
}

/// Runs the selected targets in turns. The next one is always the target with the least time so far.
///
/// # Errors
/// cargo-fuzz or the nightly toolchain is missing, a target does not build, or an input breaks a target.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    check_tools()?;
    let all = targets()?;
    let selected: BTreeMap<String, &Target> = all
        .iter()
        .filter(|target| target.is_selected(&args.only))
        .map(|target| (target.title(), target))
        .collect();
    ensure!(
        !selected.is_empty(),
        "no fuzz target is named {}: use CRATE or CRATE/TARGET of pkg/CRATE/fuzz/fuzz_targets/TARGET.rs",
        args.only.join(", ")
    );
    let checkout = Checkout::read()?;
    let (stamp, mut totals): (_, Totals) =
        Stamp::of_chore("fuzz", &args.adding, args.only.is_empty(), &checkout)?;
    let mut codes = BTreeMap::new();
    for target in &all {
        codes.insert(target.title(), target.code(&checkout)?);
    }
    for title in selected.keys() {
        totals.renew(title, &codes[title], args.adding.anew);
    }
    totals.settle(&codes);
    let run = Mutex::new(Run {
        args,
        totals,
        stamp,
        built: BTreeSet::new(),
        busy: BTreeSet::new(),
    });
    let work = || -> anyhow::Result<()> {
        loop {
            let next = run.lock().next(&selected)?;
            let Some((target, seconds)) = next else {
                return Ok(());
            };
            let ran = fuzz(target, seconds, args.keep);
            run.lock().add(target, ran)?;
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..args.jobs.get()).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| bail!("a run of a target panicked"))
        })
    })?;
    let run = run.into_inner();
    run.save()?;
    let findings = report::print(&run.totals);
    ensure!(
        findings.is_empty(),
        "inputs break their targets: {}. Mend the parser, and add a test with the input beside its code",
        findings.join(", ")
    );
    Ok(())
}

fn check_tools() -> anyhow::Result<()> {
    let version = Command::new("cargo")
        .env_remove("RUSTUP_TOOLCHAIN")
        .args(["+nightly", "fuzz", "--version"])
        .stdin(Stdio::null())
        .output();
    if !version.is_ok_and(|output| output.status.success()) {
        bail!(
            "cargo-fuzz or the nightly toolchain is missing. Install them: `rustup toolchain install nightly`, \
             `cargo install --locked {CARGO_FUZZ}`"
        );
    }
    Ok(())
}

/// Returns the folder of the builds with sanitizers.
fn build_dir() -> PathBuf {
    std::env::var_os("OLM_FUZZ_TARGET_DIR").map_or_else(|| shell::target_dir().join("fuzz"), PathBuf::from)
}

/// Returns the folders of the fuzz crates, sorted.
pub(crate) fn crates() -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("pkg")).context("cannot read the folder pkg")? {
        let folder = entry?.path().join("fuzz");
        if folder.join("Cargo.toml").is_file() {
            found.push(folder);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns all targets, sorted.
fn targets() -> anyhow::Result<Vec<Target>> {
    let mut found = Vec::new();
    for folder in crates()? {
        let package = folder.parent().and_then(Path::file_name).unwrap_or_default();
        let sources = folder.join("fuzz_targets");
        for entry in fs::read_dir(&sources).with_context(|| format!("cannot read {}", sources.display()))? {
            let path = entry?.path();
            let name = path.file_stem().unwrap_or_default();
            found.push(Target {
                package: package.to_string_lossy().into_owned(),
                name: name.to_string_lossy().into_owned(),
            });
        }
    }
    found.sort();
    Ok(found)
}

/// Runs a target on a copy of its seeds for this number of seconds.
fn fuzz(target: &Target, seconds: u64, keep: bool) -> anyhow::Result<Ran> {
    eprintln!("== {}, {seconds} s", target.title());
    let inputs = corpus::copy(target, &build_dir())?;
    let artifacts = target.folder().join("artifacts").join(&target.name);
    let before = corpus::files(&artifacts);
    let mut child = target
        .cargo_fuzz("run")
        .arg(&target.name)
        .arg(&inputs)
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={TIMEOUT}"))
        .arg(format!("-rss_limit_mb={MEMORY}"))
        .arg(format!("-max_len={MAX_LENGTH}"))
        .arg("-print_final_stats=1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", target.title()))?;
    let mut log = Vec::new();
    if let Some(mut errors) = child.stderr.take() {
        errors.read_to_end(&mut log)?;
    }
    let log = String::from_utf8_lossy(&log);
    let taken = processors::of_all(&child).map_or(seconds, |taken| taken.as_secs().min(seconds));
    let ended = child.wait()?;
    let mut findings = Vec::new();
    let mut is_interrupted = false;
    for found in corpus::files(&artifacts).difference(&before) {
        if slow::confirm(target, found)? {
            findings.push(found.clone());
        } else {
            is_interrupted |= slow::is_timeout(found);
        }
    }
    // A run that a busy machine has ended is no finding: what it did counts.
    if !(ended.success() || is_interrupted && findings.is_empty()) {
        let tail: Vec<&str> = log.lines().rev().take(60).collect();
        for line in tail.iter().rev() {
            eprintln!("{line}");
        }
        if findings.is_empty() {
            findings.push(format!("{} ended with {ended}", target.title()));
        }
    }
    if keep && findings.is_empty() {
        corpus::keep(target, &inputs)?;
    }
    let mut stats = Stats::read(&log);
    stats.seeds = corpus::files(&corpus::seeds(target)).len() as u64;
    Ok(Ran {
        seconds: taken,
        stats,
        findings,
    })
}

impl Run<'_> {
    /// Returns the next target and the seconds of its next run; `None` if no target is left. Builds the crate of the target
    /// first.
    fn next<'t>(
        &mut self,
        selected: &BTreeMap<String, &'t Target>,
    ) -> anyhow::Result<Option<(&'t Target, u64)>> {
        let idle = selected.keys().filter(|title| !self.busy.contains(*title));
        let Some((title, seconds)) = self.totals.next(idle.map(String::as_str), self.args.seconds) else {
            return Ok(None);
        };
        let target = selected[title];
        if self.built.insert(target.package.clone()) {
            // One build makes all targets of the crate, because they share most of their code.
            shell::run(&mut target.cargo_fuzz("build"))
                .with_context(|| format!("cannot build the targets of {}", target.package))?;
        }
        self.busy.insert(target.title());
        Ok(Some((target, seconds)))
    }

    /// Adds the run of a target to its totals, and saves them.
    fn add(&mut self, target: &Target, ran: anyhow::Result<Ran>) -> anyhow::Result<()> {
        self.busy.remove(&target.title());
        self.totals.add(&target.title(), ran?);
        self.save()
    }

    fn save(&self) -> anyhow::Result<()> {
        self.stamp.save(
            report::report(&self.totals, self.args),
            &self.totals,
            self.args.adding.report.as_deref(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_selected_by_crate_or_title() {
        let target = Target {
            package: "image".to_owned(),
            name: "tar".to_owned(),
        };
        let selected = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|text| (*text).to_owned()).collect();
            target.is_selected(&only)
        };
        assert!(selected(&[]) && selected(&["image"]) && selected(&["fbc", "image/tar"]));
        assert!(!selected(&["tar"]) && !selected(&["image/reference"]));
    }

    #[test]
    fn every_target_is_declared_and_has_few_small_seeds() {
        let targets = targets().unwrap();
        assert!(targets.len() > 25);
        for target in targets {
            let manifest = fs::read_to_string(target.folder().join("Cargo.toml")).unwrap();
            let declared = format!("path = \"fuzz_targets/{}.rs\"", target.name);
            assert!(manifest.contains(&declared), "{}", target.title());
            let seeds = corpus::seeds(&target);
            let names = corpus::files(&seeds);
            assert!(
                (1..=corpus::MAX_SEEDS).contains(&names.len()),
                "{}",
                target.title()
            );
            for entry in fs::read_dir(&seeds).unwrap() {
                let size = entry.unwrap().metadata().unwrap().len();
                assert!(size <= corpus::MAX_SEED, "{}", target.title());
            }
        }
    }
}
