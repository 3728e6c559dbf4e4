//! Runs a folder of vectors and prints a table by kind; exit status 1 when any case is wrong.

use clap::Parser;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Compares this project's answers with recorded ones of upstream")]
struct Args {
    /// The folder of vectors
    dir: PathBuf,
    /// Write the wrong cases to this file instead of the first of them to the terminal
    #[arg(long)]
    wrong: Option<PathBuf>,
    /// Run only these kinds
    #[arg(long)]
    kind: Vec<String>,
}

/// How many wrong cases of a kind are shown.
const SHOWN: usize = 20;

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:<24} {:>7} {:>7} {:>10} {:>6}",
        "kind", "cases", "equal", "deviating", "wrong"
    )?;
    let mut wrong = Vec::new();
    for kind in olm_integration::vectors::KINDS {
        let wanted = args.kind.is_empty() || args.kind.iter().any(|name| name == kind.name);
        if !wanted || !args.dir.join(kind.path).exists() {
            continue;
        }
        let report = (kind.run)(&args.dir);
        writeln!(out, "{report}")?;
        if args.wrong.is_none() {
            for line in report.wrong.iter().take(SHOWN) {
                writeln!(out, "  {line}")?;
            }
        }
        wrong.extend(
            report
                .wrong
                .into_iter()
                .map(|line| format!("{}: {line}\n", kind.name)),
        );
    }
    if let Some(path) = &args.wrong {
        std::fs::write(path, wrong.concat())?;
    }
    Ok(if wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
