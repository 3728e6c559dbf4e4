//! `cargo xtask prove`: runs the parts of the proof, keeps their reports in docs/proof, and joins the reports into docs/proof.md.

mod holds;
mod page;
mod part;
mod stamp;
pub(crate) mod tool;

use std::fs;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context as _, bail, ensure};
use olm_proof::Report;
use serde_json::Value;

use self::holds::Holds;
pub(crate) use self::part::named as part;
use self::part::{AddsUp, PARTS, Part};
pub(crate) use self::stamp::{Adding, Stamp};
use crate::code::{self, Checkout};
use crate::shell::{self, root};

/// Options of the proof.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run only this part; repeatable. The page keeps the last reports of the others.
    #[arg(long, value_name = "PART", value_parser = part::names())]
    only: Vec<String>,
    /// Run each part for seconds instead of hours, to see that the proof itself works.
    #[arg(long)]
    short: bool,
    /// Forget the results of earlier runs; otherwise parts whose results add up continue from them.
    #[arg(long)]
    anew: bool,
    /// Run nothing; write the page from the reports that are there.
    #[arg(long)]
    page: bool,
    /// Folder of the reports; by default docs/proof, and with `--short` a folder in cargo's target directory.
    #[arg(long, value_name = "DIR")]
    reports: Option<PathBuf>,
    /// Page to write; with `--short`, no page is written unless this names one.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Arguments in the place of the part's own, such as `-- --limit-seconds 600`; for one part.
    #[arg(last = true, requires = "only")]
    scale: Vec<String>,
}

/// Runs the selected parts one after the other, and writes the page. A failed part does not stop the others.
///
/// # Errors
/// A part fails, or reports a violation.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    ensure!(
        args.scale.is_empty() || args.only.len() == 1,
        "arguments after -- are for one part: name it with --only"
    );
    let reports = folder(args)?;
    fs::create_dir_all(&reports).with_context(|| format!("cannot create {}", reports.display()))?;
    let mut failed = Vec::new();
    for part in PARTS
        .iter()
        .filter(|part| !args.page && (args.only.is_empty() || args.only.iter().any(|only| only == part.name)))
    {
        if let Err(error) = prove(part, args, &reports) {
            eprintln!("error: {}: {error:#}", part.name);
            failed.push(part.name);
        }
    }
    let known: Vec<(&Part, Option<Report>)> = PARTS
        .iter()
        .map(|part| (part, Report::read(&file(&reports, part)).ok()))
        .collect();
    for (part, report) in &known {
        if report
            .as_ref()
            .is_some_and(|report| !report.violations.is_empty())
            && !failed.contains(&part.name)
        {
            failed.push(part.name);
        }
    }
    let output = args
        .output
        .clone()
        .or_else(|| (!args.short).then(|| root().join("docs/proof.md")));
    if let Some(output) = output {
        let checkout = Checkout::read()?;
        let holds = |part: &Part, report: &Report| {
            let ran = report.ran.clone().unwrap_or_default();
            Holds::of(part, &ran, &checkout)
        };
        let mut rows = Vec::new();
        for (part, report) in known {
            let holds = report.as_ref().map(|report| holds(part, report)).transpose()?;
            rows.push((part, report, holds));
        }
        fs::write(&output, page::page(&rows, &machine()))
            .with_context(|| format!("cannot write {}", output.display()))?;
        eprintln!("wrote {}", output.display());
    }
    if !failed.is_empty() {
        bail!("not proved: {}", failed.join(", "));
    }
    Ok(())
}

/// Runs a part, and adds commit, code, date and duration to its report. A part that stamps its report itself is only run.
fn prove(part: &Part, args: &Args, reports: &Path) -> anyhow::Result<()> {
    let path = file(reports, part);
    let mut command = part.command(args.short, &args.scale)?;
    command.arg("--report").arg(&path);
    if part.adds_up == AddsUp::OfEachResult {
        if args.anew && !args.short {
            command.arg("--anew");
        }
        return shell::run(&mut command);
    }
    let checkout = Checkout::read()?;
    let sum = code::sum(part.digests(&checkout)?);
    let continues = part.adds_up == AddsUp::OfSameCode
        && !args.anew
        && Report::read(&path).is_ok_and(|earlier| is_of(&earlier, &sum));
    // If the part crashes, an older report must not count as its result.
    if path.exists() && !continues {
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let (stamp, _) = Stamp::start::<Value>(part, Some(&path), !continues, &checkout)?;
    if part.adds_up == AddsUp::OfSameCode {
        command.arg("--code").arg(sum);
    }
    let outcome = shell::run(&mut command);
    let mut report = match (Report::read(&path), outcome) {
        (Ok(report), _) => report,
        (Err(_), Err(error)) => return Err(error),
        (Err(error), Ok(())) => return Err(error).context("the part wrote no report"),
    };
    report.ran = Some(stamp.ran());
    // The simulation does not name its command. The page needs it: the seed is one of its arguments.
    if report.command.is_empty() {
        report.command = part.typed(args.short, &args.scale);
    }
    report.write(&path)?;
    let broken = report.violations.len();
    if broken > 0 {
        bail!("{broken} violations");
    }
    Ok(())
}

/// Returns true if the results in a report come from the code with this digest. A run that was stopped has left its results without
/// a stamp, so only the state tells. After the digest, some parts add their settings, which they compare themselves.
fn is_of(report: &Report, code: &str) -> bool {
    let known = report.state["code"].as_str().unwrap_or_default();
    known.split([';', ' ']).next() == Some(code)
}

/// Returns the folder of the reports. It is absolute, because the parts run in other folders than the chore's caller.
fn folder(args: &Args) -> anyhow::Result<PathBuf> {
    let folder = match &args.reports {
        Some(folder) => folder.clone(),
        None if args.short => shell::target_dir().join("proof"),
        None => root().join("docs/proof"),
    };
    absolute(&folder).with_context(|| format!("{} has no absolute path", folder.display()))
}

/// Returns the path of a part's report.
fn file(reports: &Path, part: &Part) -> PathBuf {
    reports.join(format!("{}.json", part.name))
}

/// Returns a description of the machine: processor, number of cores, memory.
fn machine() -> String {
    let read = |path: &str, name: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let processor = read("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let memory = read("/proc/meminfo", "MemTotal")
        .and_then(|value| value.split(' ').next()?.parse::<u64>().ok())
        .map_or_else(String::new, |kib| format!(", {} GiB of memory", kib >> 20));
    format!("{cores} cores of {processor}{memory}")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn results_of_a_stopped_run_are_those_of_its_code() {
        let stopped = Report {
            state: serde_json::json!({"code": "1", "tally": {}}),
            ..Report::default()
        };
        assert!(is_of(&stopped, "1") && !is_of(&stopped, "2"));
        for known in ["1; 3 changes", "1 3 None"] {
            let with_settings = Report {
                state: serde_json::json!({"code": known}),
                ..Report::default()
            };
            assert!(is_of(&with_settings, "1") && !is_of(&with_settings, known));
        }
        assert!(!is_of(&Report::default(), "1"));
    }

    #[test]
    fn a_relative_folder_of_reports_is_that_of_the_caller() {
        let folder = |words: &[&str]| folder(&Cli::parse_from(words).args).unwrap();
        let caller = std::env::current_dir().unwrap();
        assert_eq!(folder(&["prove", "--reports", "x/y"]), caller.join("x/y"));
        assert_eq!(folder(&["prove"]), root().join("docs/proof"));
    }
}
