//! `cargo xtask test`: runs the test suites and prints what failed and the sum of their totals as `N passed, N failed, N skipped`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, bail};

use crate::shell::{self, cargo};

/// Sum of the suites' totals.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    passed: u64,
    failed: u64,
    skipped: u64,
    /// Lines about failed tests, one for each.
    failures: Vec<String>,
}

impl Totals {
    /// Adds the counts of a suite's closing line, `test result: ok. 3 passed; 0 failed; 1 ignored; ...`, or a line about a failed
    /// test, `test name ... FAILED`. Other lines are ignored.
    fn add(&mut self, line: &str) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("test result:") {
            let counts = rest.split_once(". ").map_or("", |(_, counts)| counts);
            self.add_counts(counts, ';');
        } else if line.starts_with("test ") && line.ends_with("... FAILED") {
            self.failures.push(line.to_owned());
        }
    }

    /// Adds counts, each of which is a number and a word.
    fn add_counts(&mut self, counts: &str, separator: char) {
        for part in counts.split(separator) {
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
                "ignored" | "skipped" => self.skipped += number,
                _ => {}
            }
        }
    }
}

/// Runs `cargo test` with `args`, or for all crates if `args` is empty.
///
/// Before the tests of all crates, the programs are built once. If `OLM_TEST_NODE` is set, the controllers are also tested on a
/// real node, if the machine can run one. With `args`, nothing is built before: a suite that starts the controllers builds them
/// itself, so that the tests of a pure crate start at once.
///
/// A failed suite does not stop the others. After the totals, any failure is an error.
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
    command.args(["test", "--locked", "--no-fail-fast"]).args(args);
    if args.is_empty() {
        command.arg("--workspace");
        // One call of cargo builds programs and tests, so that they have the same features and share their crates.
        shell::run(cargo().args(["build", "--locked", "--workspace", "--bins", "--tests"]))?;
        if std::env::var_os("OLM_BIN_DIR").is_none() {
            // Without the variable, each suite that starts the programs would call cargo again.
            command.env("OLM_BIN_DIR", shell::target_dir().join("debug"));
        }
    }
    let mut totals = Totals::default();
    let status = each_line(&mut command, |line| totals.add(line))?;
    if args.is_empty() && std::env::var_os("OLM_TEST_NODE").is_some() {
        on_a_node(&mut totals)?;
    }
    for failure in &totals.failures {
        println!("{failure}");
    }
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

/// Exit code of `hack/node/test.sh` if the node does not start.
const NOT_UP: i32 = 3;

/// Tests `config/default` on the node of `hack/node`, with the programs that were just built. `make test-node` runs all tests
/// there.
fn on_a_node(totals: &mut Totals) -> anyhow::Result<()> {
    let mut command = Command::new("hack/node/test.sh");
    command
        .current_dir(shell::root())
        .env("DEBUG_BINARIES", "1")
        .env("ONLY", "config/default");
    let mut last = String::new();
    let status = each_line(&mut command, |line| {
        // After a failure, the script prints a description of the cluster after the totals.
        if line.contains(" passed, ") && line.ends_with(" skipped") {
            line.clone_into(&mut last);
        } else if line.starts_with("FAIL ") {
            totals.failures.push(line.to_owned());
        }
    })?;
    if status.code() == Some(NOT_UP) {
        eprintln!(
            "SKIPPED: the tests on a real node: it does not come up on this machine; see `make test-node`"
        );
        totals.skipped += 1;
        return Ok(());
    }
    let before = totals.failed;
    totals.add_counts(&last, ',');
    if !status.success() && totals.failed == before {
        // No test failed but the script itself, before or after the tests.
        totals.failed += 1;
    }
    Ok(())
}

/// Runs a program, prints its output, and passes every line to `seen`.
#[expect(clippy::print_stdout, reason = "the suites' output is this chore's result")]
fn each_line(command: &mut Command, mut seen: impl FnMut(&str)) -> anyhow::Result<ExitStatus> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n') {
            let line = line.with_context(|| format!("cannot read the output of {name}"))?;
            let line = String::from_utf8_lossy(&line);
            seen(&line);
            println!("{line}");
        }
    }
    child.wait().with_context(|| format!("cannot wait for {name}"))
}

#[cfg(test)]
mod tests {
    use super::Totals;

    #[test]
    fn totals_and_failures_are_collected_over_suites() {
        let mut totals = Totals::default();
        totals.add(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s",
        );
        totals.add("running 12 tests");
        totals.add("test real::objects ... FAILED");
        totals.add("test real::names ... ok");
        totals.add("test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(
            totals,
            Totals {
                passed: 5,
                failed: 1,
                skipped: 1,
                failures: vec!["test real::objects ... FAILED".to_owned()],
            }
        );
        totals.add_counts("9 passed, 0 failed, 2 skipped", ',');
        assert_eq!((totals.passed, totals.skipped), (14, 3));
    }
}
