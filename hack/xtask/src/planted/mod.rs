//! `cargo xtask planted`: bugs that are planted in the controllers, and the simulation that must find each of them.
//!
//! The bugs in production code are the patches of test/simulation/planted. Each is applied to a copy of the workspace, so that no
//! production code knows of them. The bugs between the controllers and the network are in the simulation itself.

mod patch;
mod tree;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use olm_proof::{Report, Violation};

use self::patch::Patch;
use self::tree::Tree;
use crate::shell::{self, cargo};

/// Name of the bugs between the controllers and the network, for `--only`.
const SEAM: &str = "seam";

/// Arguments of `cargo xtask planted`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Plant only this bug, the name of a patch without its ending; `seam` for the bugs between the controllers and the network;
    /// repeatable.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Time for all bugs between the controllers and the network.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    limit_seconds: u64,
    /// Write the result as JSON to this file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Plants the selected bugs one after the other, and looks for each.
///
/// # Errors
/// The unchanged controllers do not build or break a rule, or a bug cannot be tried or is not found.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let selected = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    let patches: Vec<Patch> = patch::all()?
        .into_iter()
        .filter(|patch| selected(&patch.name))
        .collect();
    ensure!(
        selected(SEAM) || !patches.is_empty(),
        "there is no planted bug {}",
        args.only.join(", ")
    );
    let mut report = Report {
        title: "Planted bugs".to_owned(),
        about: "Each bug is planted alone: as a patch of the production code, or between the controllers and the network, as what a \
                controller with the bug would send or would not see. The simulation runs its scenarios until an invariant or a check \
                breaks, for at most a minute."
            .to_owned(),
        command: command(args),
        ..Report::default()
    };
    if !patches.is_empty() {
        plant(&patches, args, &mut report)?;
    }
    if selected(SEAM) {
        seam(args.limit_seconds, &mut report)?;
    }
    save(args, &report)?;
    let missed: Vec<&str> = report
        .violations
        .iter()
        .map(|missed| missed.text.as_str())
        .collect();
    ensure!(missed.is_empty(), "{}", missed.join("; "));
    Ok(())
}

/// Writes the report as it is, so that a run that ends early leaves what it found.
fn save(args: &Args, report: &Report) -> anyhow::Result<()> {
    let Some(path) = &args.report else {
        return Ok(());
    };
    report
        .write(path)
        .with_context(|| format!("cannot write the report {}", path.display()))
}

fn command(args: &Args) -> String {
    let only = args.only.iter().map(|only| format!(" --only {only}"));
    format!("cargo xtask planted{}", only.collect::<String>())
}

/// Plants the patches and looks for each.
fn plant(patches: &[Patch], args: &Args, report: &mut Report) -> anyhow::Result<()> {
    let tree = Tree::copy()?;
    let begin = Instant::now();
    tree.build()?;
    eprintln!(
        "the unchanged simulation is built: {} s",
        begin.elapsed().as_secs()
    );
    // A rule that the controllers break without a bug would find every bug.
    let base = tree.hunt()?;
    if let Some(broken) = base.found {
        report.violations.push(Violation {
            text: format!("Without a planted bug: {}", broken.text),
            ..broken
        });
    }
    report
        .figures
        .push(("without a planted bug".to_owned(), base.text));
    let at = report.figures.len();
    let mut found = 0;
    let mut builds = Duration::ZERO;
    for patch in patches {
        let name = format!("{}: {} ({})", patch.name, patch.what, patch.source);
        let tried = tree.with(patch, |tree| {
            let begin = Instant::now();
            tree.build()?;
            let build = begin.elapsed();
            Ok((tree.hunt()?, build))
        });
        let text = match tried {
            Ok((hunt, build)) => {
                builds += build;
                if hunt.found.is_some() {
                    found += 1;
                } else {
                    report.violations.push(missed(patch, "is not found"));
                }
                eprintln!("{}: {}, built in {} s", patch.name, hunt.text, build.as_secs());
                hunt.text
            }
            Err(error) => {
                eprintln!("{}: {error:#}", patch.name);
                report.violations.push(missed(patch, "cannot be tried"));
                format!("cannot be tried: {error:#}")
            }
        };
        report.figures.push((name, text));
        save(args, report)?;
    }
    let count = u32::try_from(patches.len()).unwrap_or(u32::MAX);
    let figure = format!(
        "{found} of {count}, {} s per build",
        (builds / count.max(1)).as_secs()
    );
    report
        .figures
        .insert(at, ("bugs in production code found".to_owned(), figure));
    Ok(())
}

fn missed(patch: &Patch, how: &str) -> Violation {
    Violation {
        invariant: "adequacy".to_owned(),
        seed: patch.name.clone(),
        text: format!("The planted bug {} {how}: {}", patch.name, patch.what),
    }
}

/// Adds the bugs between the controllers and the network. They need no build of their own, so they run in the build that other
/// parts of the proof use.
fn seam(limit_seconds: u64, report: &mut Report) -> anyhow::Result<()> {
    let path = shell::target_dir().join("planted-seam.json");
    let mut command = cargo();
    command.args([
        "run",
        "--profile",
        "proof",
        "--quiet",
        "-p",
        "olm-simulation",
        "--bin",
        "simulate",
        "--",
    ]);
    command.args([
        "planted",
        "--limit-seconds",
        &limit_seconds.to_string(),
        "--report",
    ]);
    let outcome = shell::run(command.arg(&path));
    // The command fails if a bug is not found; its report says which.
    let Ok(found) = Report::read(&path) else {
        return outcome.and(Err(anyhow::anyhow!("the simulation wrote no report")));
    };
    std::fs::remove_file(&path)?;
    report.figures.extend(found.figures);
    report.violations.extend(found.violations);
    report.not_covered.extend(found.not_covered);
    Ok(())
}
