//! Groups of mutants, and the calls of cargo-mutants for them.

use std::path::Path;
use std::process::Command;

use crate::shell::{self, cargo};

/// Cargo configuration that limits each test program to a minute of processor time. The tests of each group need less than ten
/// seconds. So a mutant that loops forever is caught, however busy the machine is.
const RUNNER: &str =
    r#"--cargo-arg=--config=target.'cfg(unix)'.runner=["sh", "-c", 'ulimit -t 60; exec "$0" "$@"']"#;
/// Maximum duration of a crate's tests by the clock, in seconds. A mutant that waits forever reaches it and counts as caught.
const TIMEOUT: &str = "1200";

/// A group: the mutants of some files of a crate.
pub(super) struct Group {
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    /// Globs of files; if empty, all files of the package.
    files: &'static [&'static str],
    /// Stages of tests. Each is a list of arguments of `cargo test` that select tests of the crate, separated by spaces. The
    /// mutants that survive one stage are tried with the next one.
    pub(super) tests: &'static [&'static str],
}

/// Crates that the development profile optimises. They are compiled without optimisation here, because compilation takes most of
/// the time.
const OPTIMISED: [&str; 2] = ["olm-plan", "olm-resolve"];
/// Environment variable with the number of cases in the property tests of `olm-resolve`. It is a twentieth of the default,
/// because these tests run once for each mutant.
const CASES: (&str, &str) = ("OLM_RESOLVE_CASES", "5000");

/// All groups. The smallest and purest crates come first.
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
        // The slowest tests, the property tests, come last.
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
        files: &["pkg/decide/src/object_set.rs", "pkg/decide/src/object_set/*.rs"],
        tests: &["--lib"],
    },
    Group {
        name: "extension",
        package: "olm-decide",
        files: &["pkg/decide/src/extension/**/*.rs", "pkg/decide/src/numbers.rs"],
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

    /// Returns the call of cargo-mutants that tries the mutants in `tree` with these tests, except those that have a result in
    /// `out`.
    ///
    /// The arguments of the tests also apply to the build. By itself, cargo-mutants would compile every test of the crate, and a
    /// mutant would take twice as long. A mutant of a small crate takes one second of processor time, of which the tests are a
    /// quarter.
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
