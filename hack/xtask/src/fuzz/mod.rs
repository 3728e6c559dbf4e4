//! `cargo xtask fuzz`: every fuzz target under libFuzzer.
//!
//! The fuzz crates, `pkg/*/fuzz`, stand outside the workspace, because sanitizers need a nightly toolchain. Each target keeps a small
//! corpus of seeds in `corpus/TARGET`, which the tests of the repository never read. A run works on a copy of the seeds; `--keep`
//! merges what the run found into the seeds and minimises them.

mod corpus;
mod stats;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};
use olm_proof::{Report, Violation};

use self::stats::Stats;
use crate::shell::{self, root};

/// The release of cargo-fuzz that the message names if there is none.
const CARGO_FUZZ: &str = "cargo-fuzz@0.13.2";
/// Longest input, in bytes.
const MAX_LENGTH: usize = 4096;
/// Longest time for one input, in seconds.
const TIMEOUT: u32 = 10;
/// Most resident memory of a target, in MiB.
const MEMORY: u32 = 2048;

/// Arguments of `cargo xtask fuzz`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Run only this target, CRATE/TARGET, or the targets of this crate. Repeatable.
    #[arg(long, value_name = "CRATE[/TARGET]")]
    only: Vec<String>,
    /// Merge the inputs that were found into the seeds of the repository, minimised.
    #[arg(long)]
    keep: bool,
    /// Write the result as JSON to this file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// A fuzz target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    /// Folder of the crate below `pkg`.
    package: String,
    name: String,
}

impl Target {
    fn title(&self) -> String {
        format!("{}/{}", self.package, self.name)
    }

    /// Returns the folder of the fuzz crate.
    fn folder(&self) -> PathBuf {
        root().join("pkg").join(&self.package).join("fuzz")
    }

    /// Returns true if `only` selects the target; an empty list selects every target.
    fn is_selected(&self, only: &[String]) -> bool {
        only.is_empty()
            || only
                .iter()
                .any(|text| *text == self.package || *text == self.title())
    }

    /// Returns the call of cargo-fuzz for `chore`, in the folder of the product's crate.
    fn cargo_fuzz(&self, chore: &str) -> Command {
        let mut command = Command::new("cargo");
        // The toolchain of the workspace would win over `+nightly`.
        command
            .env_remove("RUSTUP_TOOLCHAIN")
            .env("CARGO_TARGET_DIR", build_dir())
            .current_dir(self.folder().parent().unwrap_or(Path::new(".")))
            .args(["+nightly", "fuzz", chore]);
        command
    }
}

/// Result of a target's run.
struct Outcome {
    target: Target,
    stats: Stats,
    /// Paths of the inputs that broke the target, below the repository.
    findings: Vec<String>,
}

/// Runs the selected targets, one after the other.
///
/// # Errors
/// cargo-fuzz or the nightly toolchain is missing, a target does not build, or an input breaks a target.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    check_tools()?;
    let targets: Vec<Target> = targets()?
        .into_iter()
        .filter(|target| target.is_selected(&args.only))
        .collect();
    ensure!(
        !targets.is_empty(),
        "no fuzz target is named {}: use CRATE or CRATE/TARGET of pkg/CRATE/fuzz/fuzz_targets/TARGET.rs",
        args.only.join(", ")
    );
    let mut outcomes = Vec::new();
    for target in targets {
        eprintln!("== {}, {} s", target.title(), args.seconds);
        let outcome = fuzz(target, args)?;
        eprintln!("{}", line(&outcome));
        outcomes.push(outcome);
    }
    let findings: Vec<&str> = outcomes
        .iter()
        .flat_map(|outcome| outcome.findings.iter().map(String::as_str))
        .collect();
    print(&outcomes, findings.len());
    if let Some(path) = &args.report {
        report(&outcomes, args)
            .write(path)
            .with_context(|| format!("cannot write the report {}", path.display()))?;
    }
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

/// Returns the folder of the sanitizers' builds.
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

/// Runs a target on a copy of its seeds.
fn fuzz(target: Target, args: &Args) -> anyhow::Result<Outcome> {
    shell::run(target.cargo_fuzz("build").arg(&target.name))
        .with_context(|| format!("cannot build {}", target.title()))?;
    let inputs = corpus::copy(&target, &build_dir())?;
    let artifacts = target.folder().join("artifacts").join(&target.name);
    let before = corpus::files(&artifacts);
    let output = target
        .cargo_fuzz("run")
        .arg(&target.name)
        .arg(&inputs)
        .arg("--")
        .arg(format!("-max_total_time={}", args.seconds))
        .arg(format!("-timeout={TIMEOUT}"))
        .arg(format!("-rss_limit_mb={MEMORY}"))
        .arg(format!("-max_len={MAX_LENGTH}"))
        .arg("-print_final_stats=1")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", target.title()))?;
    let log = String::from_utf8_lossy(&output.stderr);
    let mut findings: Vec<String> = corpus::files(&artifacts).difference(&before).cloned().collect();
    if !output.status.success() {
        let tail: Vec<&str> = log.lines().rev().take(60).collect();
        for line in tail.iter().rev() {
            eprintln!("{line}");
        }
        if findings.is_empty() {
            findings.push(format!("{} ended with {}", target.title(), output.status));
        }
    }
    if args.keep && findings.is_empty() {
        corpus::keep(&target, &inputs)?;
    }
    let mut stats = Stats::read(&log);
    stats.seeds = corpus::files(&corpus::seeds(&target)).len() as u64;
    Ok(Outcome {
        target,
        stats,
        findings,
    })
}

fn line(outcome: &Outcome) -> String {
    let Stats {
        runs,
        edges,
        inputs,
        seeds,
    } = outcome.stats;
    format!(
        "{}: {runs} runs, {edges} edges covered, {inputs} inputs, {seeds} seeds, {} findings",
        outcome.target.title(),
        outcome.findings.len()
    )
}

#[expect(clippy::print_stdout, reason = "the totals are this chore's result")]
fn print(outcomes: &[Outcome], findings: usize) {
    for outcome in outcomes {
        println!("{}", line(outcome));
    }
    let runs: u64 = outcomes.iter().map(|outcome| outcome.stats.runs).sum();
    println!("{} targets, {runs} runs, {findings} findings", outcomes.len());
}

fn report(outcomes: &[Outcome], args: &Args) -> Report {
    let sum = |of: fn(&Stats) -> u64| {
        outcomes
            .iter()
            .map(|outcome| of(&outcome.stats))
            .sum::<u64>()
            .to_string()
    };
    let mut figures = vec![
        ("targets".to_owned(), outcomes.len().to_string()),
        ("seconds for each target".to_owned(), args.seconds.to_string()),
        ("runs".to_owned(), sum(|stats| stats.runs)),
        ("seeds in the repository".to_owned(), sum(|stats| stats.seeds)),
    ];
    for outcome in outcomes {
        let Stats {
            runs, edges, inputs, ..
        } = outcome.stats;
        figures.push((
            outcome.target.title(),
            format!(
                "{runs} runs, {edges} edges, {inputs} inputs, {} findings",
                outcome.findings.len()
            ),
        ));
    }
    let violations = outcomes.iter().flat_map(|outcome| {
        outcome.findings.iter().map(|path| Violation {
            invariant: "fuzz".to_owned(),
            seed: path.clone(),
            text: format!("An input breaks the fuzz target {}.", outcome.target.title()),
        })
    });
    let only = args.only.iter().map(|text| format!(" --only {text}"));
    Report {
        title: "Fuzzing".to_owned(),
        about: format!(
            "Every parser of foreign bytes runs under libFuzzer and the address sanitizer, with inputs of at most {MAX_LENGTH} bytes, \
             {TIMEOUT} s for an input and {MEMORY} MiB of memory."
        ),
        figures,
        violations: violations.collect(),
        not_covered: vec![format!(
            "Inputs above {MAX_LENGTH} bytes: property tests and `cargo xtask attack` cover them."
        )],
        command: format!(
            "cargo xtask fuzz --seconds {}{}",
            args.seconds,
            only.collect::<String>()
        ),
        ..Report::default()
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
