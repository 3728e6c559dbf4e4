//! Compares the simulated API server with kube-apiserver.

use std::fs;
use std::path::{Path, PathBuf, absolute};

use anyhow::Context as _;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::shell::{self, cargo, root};

/// Files and folders that decide about the answers of both servers and about the sequences, below the root.
const COMPARED: [&str; 8] = [
    "config/crd",
    "hack/controlplane/go.mod",
    "hack/controlplane/main.go",
    "pkg/bundle/src/crd_schema",
    "pkg/cel/src",
    "test/harness/src/control_plane.rs",
    "test/world/src",
    "test/world/tests/differential",
];
/// Number of hex digits of a state.
const DIGITS: usize = 16;

/// Arguments of the comparison.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of random sequences of requests.
    #[arg(long, default_value_t = 100_000)]
    sequences: u64,
    /// Seed of the first sequence; the others have the numbers that follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// File for the report, as JSON. It is written every thousand sequences.
    #[arg(long)]
    report: Option<PathBuf>,
    /// Continue the run whose report is in the file of `--report`: run only the seeds that it lacks or that differed. If the
    /// code of the comparison or the version of kube-apiserver has changed, start from the beginning.
    #[arg(long, requires = "report")]
    resume: bool,
}

/// Runs the comparison, optimised.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut command = cargo();
    command.args([
        "test",
        "--profile",
        "proof",
        "--quiet",
        "--package",
        "olm-world",
        "--test",
        "differential",
        "--",
    ]);
    command.args([
        "--sequences",
        &args.sequences.to_string(),
        "--seed",
        &args.seed.to_string(),
        "--state",
        &state(&root(), &COMPARED)?,
    ]);
    if let Some(report) = &args.report {
        // The test runs in the folder of its crate.
        command.arg("--report").arg(absolute(report)?);
    }
    if args.resume {
        command.arg("--resume");
    }
    shell::run(&mut command)
}

/// Returns a digest of files and of the files in folders: their paths and contents.
fn state(root: &Path, parts: &[&str]) -> anyhow::Result<String> {
    let mut files = Vec::new();
    for part in parts {
        collect(&root.join(part), &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    for path in files {
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.strip_prefix(root).unwrap_or(&path);
        let name = name.as_os_str().as_encoded_bytes();
        for part in [name, &bytes] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
    }
    let mut out = HEXLOWER.encode(&hash.finalize());
    out.truncate(DIGITS);
    Ok(out)
}

/// Adds a file, or all files below a folder.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    for entry in entries {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{COMPARED, state};
    use crate::shell::root;

    #[test]
    fn the_state_depends_on_names_and_contents_of_the_files_alone() {
        let dir = tempfile::tempdir().unwrap();
        let of = |parts: &[&str]| state(dir.path(), parts);
        fs::create_dir_all(dir.path().join("src/inner")).unwrap();
        fs::write(dir.path().join("src/inner/a.rs"), "one").unwrap();
        fs::write(dir.path().join("go.mod"), "v1").unwrap();
        let first = of(&["src", "go.mod"]).unwrap();
        assert_eq!(of(&["go.mod", "src"]).unwrap(), first);
        fs::write(dir.path().join("other"), "x").unwrap();
        assert_eq!(of(&["src", "go.mod"]).unwrap(), first);

        fs::write(dir.path().join("go.mod"), "v2").unwrap();
        let second = of(&["src", "go.mod"]).unwrap();
        assert_ne!(second, first);
        fs::rename(
            dir.path().join("src/inner/a.rs"),
            dir.path().join("src/inner/b.rs"),
        )
        .unwrap();
        assert_ne!(of(&["src", "go.mod"]).unwrap(), second);
        assert!(of(&["missing"]).is_err());
    }

    #[test]
    fn the_compared_files_exist() {
        state(&root(), &COMPARED).unwrap();
    }
}
