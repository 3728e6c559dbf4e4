//! Running the real program.

#![allow(dead_code, reason = "each test uses its part")]

pub(crate) mod chromium;
pub(crate) mod picture;
pub(crate) mod world;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Output and exit code of the program.
#[derive(Debug)]
pub(crate) struct Said {
    /// The exit code.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}\n{}", self.code, self.out)?;
        if self.err.is_empty() {
            Ok(())
        } else {
            write!(f, "--- standard error\n{}", self.err)
        }
    }
}

/// Says what a test skips, and why, past the test runner's capture. `cargo xtask test` counts the test as skipped.
pub(crate) fn skipped(reason: &str) {
    let _ = std::io::stderr().write_all(format!("SKIPPED: {reason}\n").as_bytes());
}

/// Returns the folder of vectors in `OLM_VECTORS`. Without it, says that `what` is skipped.
pub(crate) fn vectors(what: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("OLM_VECTORS").map(PathBuf::from);
    if folder.is_none() {
        skipped(&format!("OLM_VECTORS is not set, so {what}"));
    }
    folder
}

/// Our catalogs for these tests.
pub(crate) fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test/testdata/cli")
}

/// Runs the program in the folder of the catalogs, without a cluster.
pub(crate) fn run(args: &[&str]) -> Said {
    run_with(args, &[])
}

/// Runs the program like [`run`], with additional environment variables.
pub(crate) fn run_with(args: &[&str], variables: &[(&str, &str)]) -> Said {
    let output = Command::new(env!("CARGO_BIN_EXE_kubectl-olm"))
        .args(args)
        .current_dir(testdata())
        .env("KUBECONFIG", "/dev/null")
        .env("NO_COLOR", "1")
        .envs(variables.iter().copied())
        .output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match output {
        Ok(output) => Said {
            code: output.status.code().unwrap_or(-1),
            out: text(&output.stdout),
            err: text(&output.stderr),
        },
        Err(error) => Said {
            code: -1,
            out: String::new(),
            err: error.to_string(),
        },
    }
}
