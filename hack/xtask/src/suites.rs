//! Runs every suite and sums their totals in one closing line, `N passed, N failed, N skipped`.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context as _, bail};

use crate::shell::{self, cargo};

/// Sum of the suites' totals.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Totals {
    /// Adds a suite's closing line, `test result: ok. 3 passed; 0 failed; 1 ignored; ...`; other lines count nothing.
    fn add(&mut self, line: &str) {
        let Some(rest) = line.trim().strip_prefix("test result:") else {
            return;
        };
        let counts = rest.split_once(". ").map_or("", |(_, counts)| counts);
        for part in counts.split(';') {
            let mut words = part.split_whitespace();
            let (Some(number), Some(word)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(number) = number.parse::<u64>() else {
                continue;
            };
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.skipped += number,
                _ => {}
            }
        }
    }
}

/// Runs `cargo test` with `args`, or for all crates when `args` is empty.
///
/// For all crates the two controllers are built once beforehand. With `args`, a suite that starts the controllers builds
/// them itself, so that the tests of a pure crate start at once.
///
/// A suite that fails does not stop the others; any failure makes this an error after the totals.
#[expect(
    clippy::print_stdout,
    reason = "the suites' output and the totals are this chore's result"
)]
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    if std::env::var_os("OLM_VECTORS").is_none() {
        eprintln!(
            "OLM_VECTORS is not set: the differential tests have nothing to compare with and are skipped"
        );
    }
    let mut command = cargo();
    command
        .args(["test", "--no-fail-fast"])
        .args(args)
        .stdout(Stdio::piped());
    if args.is_empty() {
        command.arg("--workspace");
        shell::run(cargo().args([
            "build",
            "--package",
            "catalogd",
            "--package",
            "operator-controller",
        ]))?;
        if std::env::var_os("OLM_BIN_DIR").is_none() {
            // Or each suite that starts them would ask cargo for them once more.
            command.env("OLM_BIN_DIR", shell::target_dir().join("debug"));
        }
    }
    let mut child = command.spawn().context("cannot start `cargo test`")?;
    let mut totals = Totals::default();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.context("cannot read the output of `cargo test`")?;
            let line = String::from_utf8_lossy(&line);
            totals.add(&line);
            println!("{line}");
        }
    }
    let status = child.wait().context("cannot wait for `cargo test`")?;
    println!(
        "{} passed, {} failed, {} skipped",
        totals.passed, totals.failed, totals.skipped
    );
    if !status.success() || totals.failed > 0 {
        bail!("tests failed ({status})");
    }
    if totals.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Totals;

    #[test]
    fn totals_add_up_over_suites() {
        let mut totals = Totals::default();
        totals.add(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        );
        totals.add("running 12 tests");
        totals.add("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(
            totals,
            Totals {
                passed: 5,
                failed: 1,
                skipped: 1
            }
        );
    }
}
