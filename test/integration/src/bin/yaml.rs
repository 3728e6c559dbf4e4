//! Compares the YAML reader with Go's reader, on the files of folders or on mutations of them. The exit status is 1 if an answer
//! differs and no listed deviation explains it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use olm_integration::yaml::{Oracle, Report, corpus, files, mutations};

#[derive(Parser)]
#[command(about = "Compares the YAML reader with Go's")]
struct Args {
    /// Folders of bundles, catalogs or any other files
    #[arg(required = true)]
    dirs: Vec<PathBuf>,
    /// Compare so many mutations of the files instead of the files
    #[arg(long)]
    mutations: Option<usize>,
    /// Seed of the mutations; the same seed makes the same ones
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Maximum number of shown differences.
const SHOWN: usize = 20;
/// Maximum length of a shown difference, in characters.
const WIDTH: usize = 2000;

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let scratch = tempfile::tempdir().context("cannot make a folder for the oracle")?;
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/yaml-oracle");
    let mut oracle = Oracle::start(&sources, scratch.path())?;
    let mut report = Report::default();
    if let Some(count) = args.mutations {
        report.add(mutations(&mut oracle, &corpus(&args.dirs)?, args.seed, count)?);
    } else {
        for dir in &args.dirs {
            report.add(files(&mut oracle, dir)?);
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{report}")?;
    for difference in report.differences.iter().take(SHOWN) {
        let text: String = difference.to_string().chars().take(WIDTH).collect();
        writeln!(out, "{text}")?;
    }
    Ok(if report.differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
