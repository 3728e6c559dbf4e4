//! Test programs of the workspace, and their runs side by side.

use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use parking_lot::Mutex;
use serde_json::Value;

use crate::shell::{self, cargo};

/// Number of suites that run at the same time. While one waits, for a rollout or a clock, another one uses the processors.
const LANES: usize = 2;
/// Growth of the heap in percent at which etcd and the API servers collect garbage. With Go's own 100, this takes a third of the API
/// servers' processor time, and they take most of that of the suites.
const GROWTH: &str = "200";

/// A program with tests, or the doc tests of all crates.
pub(super) struct Suite {
    name: String,
    command: Command,
}

/// Result of a suite.
pub(super) struct Outcome {
    pub(super) name: String,
    /// Lines of its standard output and standard error.
    pub(super) output: String,
    pub(super) is_good: bool,
    pub(super) duration: Duration,
}

/// Returns all suites of the workspace, and builds those that are not built yet. `programs` is the folder of the programs that the
/// suites start.
///
/// # Errors
/// Cargo fails, or prints messages of another format.
pub(super) fn all(programs: &Path) -> anyhow::Result<Vec<Suite>> {
    let messages = shell::output(cargo().args([
        "test",
        "--locked",
        "--workspace",
        "--no-run",
        "--message-format=json",
    ]))?;
    let mut suites = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).context("cargo's messages are no JSON")?;
        suites.extend(Suite::built(&message));
    }
    let mut doc_tests = cargo();
    doc_tests.args(["test", "--locked", "--workspace", "--no-fail-fast", "--doc"]);
    suites.push(Suite {
        name: "doc tests".to_owned(),
        command: doc_tests,
    });
    for suite in &mut suites {
        suite.command.env("OLM_BIN_DIR", programs).env("GOGC", GROWTH);
    }
    Ok(suites)
}

impl Suite {
    /// Returns the suite that a message of cargo reports as built. Other messages are about libraries, programs and warnings.
    fn built(message: &Value) -> Option<Self> {
        let program = message["executable"].as_str()?;
        if message["profile"]["test"] != true {
            return None;
        }
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let source = Path::new(message["target"]["src_path"].as_str()?);
        let mut command = Command::new(program);
        // `cargo test` sets both as well.
        command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
        Some(Self {
            name: source
                .strip_prefix(shell::root())
                .unwrap_or(source)
                .display()
                .to_string(),
            command,
        })
    }

    fn run(self) -> Outcome {
        let Self { name, command } = self;
        eprintln!("running {name}");
        let begin = Instant::now();
        let (output, is_good) =
            finish(command).unwrap_or_else(|error| (format!("{name} cannot run: {error:#}\n"), false));
        Outcome {
            name,
            output,
            is_good,
            duration: begin.elapsed(),
        }
    }
}

/// Runs a program to its end. Returns its standard output and standard error, and if it succeeds.
fn finish(mut command: Command) -> anyhow::Result<(String, bool)> {
    let (mut reader, writer) = std::io::pipe()?;
    let mut child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command holds the pipe's other end, and the output ends only when nobody holds it.
    drop(command);
    let mut output = Vec::new();
    reader.read_to_end(&mut output)?;
    let status = child.wait()?;
    Ok((String::from_utf8_lossy(&output).into_owned(), status.success()))
}

/// Runs the suites, [`LANES`] at a time, and passes each outcome to `seen` when its suite has ended.
pub(super) fn run(suites: Vec<Suite>, mut seen: impl FnMut(&Outcome)) {
    let queue = Mutex::new(suites.into_iter());
    let (sender, outcomes) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..LANES {
            let (queue, sender) = (&queue, sender.clone());
            scope.spawn(move || {
                loop {
                    let next = queue.lock().next();
                    let Some(suite) = next else { break };
                    if sender.send(suite.run()).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for outcome in outcomes {
            seen(&outcome);
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shell(name: &str, script: &str) -> Suite {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Suite {
            name: name.to_owned(),
            command,
        }
    }

    #[test]
    fn every_suite_runs_and_its_whole_output_is_seen() {
        let suites = vec![
            shell("slow", "sleep 0.2; echo one; echo two >&2; exit 3"),
            shell("a", "echo a"),
            shell("b", "echo b"),
            Suite {
                name: "missing".to_owned(),
                command: Command::new("/no/such/program"),
            },
        ];
        let mut seen = Vec::new();
        run(suites, |outcome| {
            seen.push((outcome.name.clone(), outcome.output.clone(), outcome.is_good));
        });
        seen.sort();
        let missing = seen.remove(2);
        assert!(
            missing.1.contains("missing cannot run: No such file"),
            "{missing:?}"
        );
        let expected = [
            ("a", "a\n", true),
            ("b", "b\n", true),
            ("slow", "one\ntwo\n", false),
        ];
        assert_eq!(
            seen,
            expected.map(|(name, output, is_good)| (name.to_owned(), output.to_owned(), is_good))
        );
    }

    #[test]
    fn only_built_test_programs_are_suites() {
        let root = shell::root();
        let message = |test: bool, executable: Value| {
            json!({
                "reason": "compiler-artifact",
                "manifest_path": root.join("pkg/x/Cargo.toml"),
                "target": {"src_path": root.join("pkg/x/tests/y.rs")},
                "profile": {"test": test},
                "executable": executable,
            })
        };
        let built = Suite::built(&message(true, json!("/target/y"))).unwrap();
        assert_eq!(built.name, "pkg/x/tests/y.rs");
        assert_eq!(
            built.command.get_current_dir(),
            Some(root.join("pkg/x").as_path())
        );
        for other in [
            message(false, json!("/target/y")),
            message(true, Value::Null),
            json!({"reason": "build-finished", "success": true}),
        ] {
            assert!(Suite::built(&other).is_none(), "{other}");
        }
    }
}
