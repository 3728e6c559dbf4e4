//! Groups of mutants, and the calls of cargo-mutants for them.

use std::path::Path;
use std::process::Command;

use crate::shell::{self, cargo};

/// Runs each test program with at most a minute of a processor, as cargo's configuration. The tests of each group need less than ten
/// seconds, and a mutant that loops forever is caught, however busy the machine is.
const RUNNER: &str =
    r#"--cargo-arg=--config=target.'cfg(unix)'.runner=["sh", "-c", 'ulimit -t 60; exec "$0" "$@"']"#;
/// Longest run of a crate's tests by the clock, in seconds; a mutant that waits forever counts as caught.
const TIMEOUT: &str = "1200";

/// Files of a crate whose mutants are run.
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    /// Globs of files; all files of the package if empty.
    files: &'static [&'static str],
    /// Arguments of `cargo test` that choose the crate's own tests, separated by spaces. What the first leave is tried with the next.
    pub(super) tests: &'static [&'static str],
}

/// Crates that the development profile optimises: compilation is most of the time of a mutant.
const OPTIMISED: [&str; 2] = ["olm-plan", "olm-resolve"];
/// Cases of the property tests of `olm-resolve`, a twentieth of their own: these tests run once for each mutant.
const CASES: (&str, &str) = ("OLM_RESOLVE_CASES", "5000");

/// The smallest and purest come first.
pub(super) const GROUPS: [Group; 6] = [
    Group {
        name: "status",
        package: "olm-status",
        files: &[],
        tests: &["--lib"],
    },
    Group {
        name: "plan",
        package: "olm-plan",
        files: &[],
        tests: &["--lib"],
    },
    Group {
        name: "resolve",
        package: "olm-resolve",
        files: &[],
        // The property tests are the slowest.
        tests: &[
            "--lib",
            "--test held --test joint --test scenarios",
            "--test properties",
        ],
    },
    Group {
        name: "applier",
        package: "olm-applier",
        files: &[
            "pkg/applier/src/ownership.rs",
            "pkg/applier/src/probe.rs",
            "pkg/applier/src/probe/*.rs",
        ],
        tests: &["--lib"],
    },
    Group {
        name: "object-set",
        package: "olm-decide",
        files: &["pkg/decide/src/object_set.rs"],
        tests: &["--lib"],
    },
    Group {
        name: "extension",
        package: "olm-decide",
        files: &["pkg/decide/src/extension/**/*.rs"],
        tests: &["--lib"],
    },
];

impl Group {
    /// Returns the call of cargo-mutants for the files of the group.
    fn command(&self, tree: &Path) -> Command {
        let mut command = cargo();
        command
            .current_dir(tree)
            .args(["mutants", "--package", self.package]);
        for file in self.files {
            command.args(["--file", file]);
        }
        command
    }

    /// Returns the names of all mutants, as cargo-mutants lists them.
    pub(super) fn list(&self, tree: &Path) -> anyhow::Result<Vec<String>> {
        let listed = shell::output(self.command(tree).arg("--list"))?;
        Ok(listed.lines().map(str::to_owned).collect())
    }

    /// Returns the call that tries the mutants in `tree` with these tests, apart from those that `out` has a result of.
    ///
    /// The arguments of the tests are those of the build, too: by itself cargo-mutants would compile every test of the crate, and a
    /// mutant takes twice as long. A change of a small crate takes one second of a processor, of which the tests are a quarter.
    pub(super) fn run(&self, tests: &str, tree: &Path, out: &Path, build: &Path) -> Command {
        let mut command = self.command(tree);
        command
            .args(["--in-place", "--iterate", "--no-times"])
            .args(["--colors", "never"])
            .args(["--timeout", TIMEOUT])
            .arg("--output")
            .arg(out)
            .args(tests.split(' ').map(|argument| format!("--cargo-arg={argument}")))
            .args(
                OPTIMISED.map(|name| format!("--cargo-arg=--config=profile.dev.package.{name}.opt-level=0")),
            )
            .arg(RUNNER)
            .env(CASES.0, CASES.1)
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_TARGET_DIR", build);
        command
    }
}
