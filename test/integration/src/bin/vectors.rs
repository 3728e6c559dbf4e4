//! Runs a folder of vectors and prints a table with a row for each kind. Writes wrong cases to a file and prints its path. The
//! exit status is 1 if there are wrong cases, and if there is no case.

use clap::Parser;
use olm_integration::vectors::{KINDS, Report};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Compares this project's answers with recorded ones of upstream")]
struct Args {
    /// The folder of vectors: any kinds, and of each any of its files and cases
    dir: PathBuf,
    /// Write the wrong cases to this file
    #[arg(long)]
    wrong: Option<PathBuf>,
    /// Run only these kinds
    #[arg(long)]
    kind: Vec<String>,
}

/// Number of wrong cases shown per kind.
const SHOWN: usize = 5;
/// Maximum length of a shown case in bytes.
const LINE: usize = 400;

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    anyhow::ensure!(args.dir.is_dir(), "{} is no folder", args.dir.display());
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:<24} {:>7} {:>7} {:>10} {:>6}",
        "kind", "cases", "equal", "deviating", "wrong"
    )?;
    let mut wrong = Vec::new();
    let mut all = Report::new("all");
    let named = |name: &str| args.kind.is_empty() || args.kind.iter().any(|kind| kind == name);
    for kind in KINDS.iter().filter(|kind| named(kind.name)) {
        if !args.dir.join(kind.path).exists() {
            writeln!(out, "{:<24} skipped: there is no {}", kind.name, kind.path)?;
            continue;
        }
        let report = (kind.run)(&args.dir);
        writeln!(out, "{report}")?;
        for (missing, count) in &report.skipped {
            writeln!(out, "  skipped {count}: missing is {missing}")?;
        }
        for line in report.wrong.iter().take(SHOWN) {
            writeln!(out, "  {}", line.get(..LINE).unwrap_or(line))?;
        }
        all.cases += report.cases;
        all.equal += report.equal;
        all.deviating += report.deviating;
        all.wrong.extend(report.wrong.iter().cloned());
        wrong.extend(
            report
                .wrong
                .into_iter()
                .map(|line| format!("{}: {line}\n", kind.name)),
        );
    }
    writeln!(out, "{all}")?;
    anyhow::ensure!(
        all.cases > 0 || !wrong.is_empty(),
        "{} has no case to compare",
        args.dir.display()
    );
    if wrong.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let path = args
        .wrong
        .unwrap_or_else(|| std::env::temp_dir().join("olm-vectors-wrong.txt"));
    std::fs::write(&path, wrong.concat())?;
    writeln!(out, "wrong cases: {}", path.display())?;
    Ok(ExitCode::FAILURE)
}
