//! `cargo xtask test`: runs the test suites and prints what failed and the sum of their totals as `N passed, N failed, N skipped`.

mod suite;
mod totals;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use anyhow::{Context as _, bail};

use self::totals::Totals;
use crate::shell::{self, cargo};

/// Runs `cargo test` with `args`, or the suites of all crates if `args` is empty.
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
    let mut totals = Totals::default();
    if args.is_empty() {
        all(&mut totals)?;
        if std::env::var_os("OLM_TEST_NODE").is_some() {
            on_a_node(&mut totals)?;
        }
    } else {
        some(args, &mut totals)?;
    }
    for failure in &totals.failures {
        println!("{failure}");
    }
    println!(
        "{} passed, {} failed, {} skipped",
        totals.passed, totals.failed, totals.skipped
    );
    if totals.failed > 0 {
        bail!("tests failed");
    }
    if totals.passed == 0 {
        bail!("no test ran");
    }
    Ok(())
}

/// Runs `cargo test` with arguments.
fn some(args: &[String], totals: &mut Totals) -> anyhow::Result<()> {
    let mut command = cargo();
    command.args(["test", "--locked", "--no-fail-fast"]).args(args);
    let status = each_line(command, |line| totals.add(line))?;
    if !status.success() {
        totals.fail("cargo test", 0);
    }
    Ok(())
}

/// Builds all crates and runs their suites. Prints the output of each suite when the suite has ended.
#[expect(clippy::print_stdout, reason = "the suites' output is this chore's result")]
fn all(totals: &mut Totals) -> anyhow::Result<()> {
    // One call of cargo builds programs and tests, so that they have the same features and share their crates.
    shell::run(cargo().args(["build", "--locked", "--workspace", "--bins", "--tests"]))?;
    // Without the folder, each suite that starts the programs would call cargo again.
    let programs =
        std::env::var_os("OLM_BIN_DIR").map_or_else(|| shell::target_dir().join("debug"), PathBuf::from);
    suite::run(suite::all(&programs)?, |outcome| {
        let before = totals.failed;
        outcome.output.lines().for_each(|line| totals.add(line));
        if !outcome.is_good {
            totals.fail(&outcome.name, before);
        }
        println!(
            "{} took {:.0?}:\n{}",
            outcome.name, outcome.duration, outcome.output
        );
    });
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
    let status = each_line(command, |line| {
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
    if !status.success() {
        totals.fail("hack/node/test.sh", before);
    }
    Ok(())
}

/// Runs a program, prints its standard output and standard error, and passes every line to `seen`.
#[expect(clippy::print_stdout, reason = "the suites' output is this chore's result")]
fn each_line(mut command: Command, mut seen: impl FnMut(&str)) -> anyhow::Result<ExitStatus> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (reader, writer) = std::io::pipe()?;
    let mut child = command
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    // The command holds the pipe's other end, and the output ends only when nobody holds it.
    drop(command);
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.with_context(|| format!("cannot read the output of {name}"))?;
        let line = String::from_utf8_lossy(&line);
        seen(&line);
        println!("{line}");
    }
    child.wait().with_context(|| format!("cannot wait for {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_standard_output_and_standard_error_are_seen() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "echo 'SKIPPED: no browser' >&2; echo 'test result: ok. 1 passed'",
        ]);
        let mut totals = Totals::default();
        assert!(each_line(command, |line| totals.add(line)).unwrap().success());
        assert_eq!((totals.passed, totals.skipped), (0, 1));
    }
}
