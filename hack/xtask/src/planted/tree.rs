//! The copy of the workspace in which bugs are planted, with its own build.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use olm_proof::{Report, Violation};

use super::limit::wait;
use super::patch::Patch;
use crate::code::Files;
use crate::shell::{self, git};

/// Maximum processor time of the hunt for one bug.
const LIMIT: Duration = Duration::from_mins(1);
/// Maximum duration of the hunt for one bug by the clock, in case the machine is busy with other work.
const WALL: Duration = Duration::from_mins(20);

/// A copy of the workspace. Its files and its build stay for the next run of the chore, so that only changed crates are built.
pub(super) struct Tree {
    root: PathBuf,
    build: PathBuf,
}

/// Result of a hunt.
pub(super) struct Hunt {
    /// First violation, if there is one.
    pub(super) found: Option<Violation>,
    /// Result as the report shows it.
    pub(super) text: String,
}

impl Tree {
    /// Writes the files of the checkout to the copy, without any patch.
    pub(super) fn copy(files: &Files) -> anyhow::Result<Self> {
        let folder = shell::target_dir().join("planted");
        let tree = Self {
            root: folder.join("tree"),
            build: folder.join("build"),
        };
        files.write(&tree.root)?;
        Ok(tree)
    }

    /// Builds the simulation.
    ///
    /// Builds and runs together take the least time with incremental builds and optimisation level 1 for the workspace's crates
    /// alone. On two busy cores, the first build takes four minutes, and a change of `olm-operator-controller` or `olm-applier`
    /// takes 5 to 12 s. A run of a scenario takes half a second. At level 0, a run takes a second; the release profile needs
    /// minutes for each change.
    pub(super) fn build(&self) -> anyhow::Result<()> {
        let mut command = shell::cargo();
        command
            .current_dir(&self.root)
            .args(["--config", "profile.dev.package.\"*\".opt-level=0"])
            .args([
                "build",
                "--quiet",
                "--package",
                "olm-simulation",
                "--bin",
                "simulate",
            ])
            .env("CARGO_TARGET_DIR", &self.build)
            .env("CARGO_INCREMENTAL", "1")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "0");
        let status = command.status().context("cannot start cargo")?;
        if !status.success() {
            bail!("the simulation does not build");
        }
        Ok(())
    }

    /// Hunts for the first violation, in one scenario or in all of them.
    pub(super) fn hunt(&self, scenario: Option<&str>) -> anyhow::Result<Hunt> {
        let path = self.build.join("hunt.json");
        if path.exists() {
            fs::remove_file(&path)?;
        }
        let mut command = Command::new(self.build.join("debug/simulate"));
        command
            .args(["hunt", "--limit-seconds", &WALL.as_secs().to_string(), "--report"])
            .arg(&path);
        if let Some(scenario) = scenario {
            command.args(["--scenario", scenario]);
        }
        let child = command.spawn().context("cannot start the simulation")?;
        let Some(status) = wait(child, LIMIT, WALL)? else {
            let text = format!("not found in {} s of a processor", LIMIT.as_secs());
            return Ok(Hunt { found: None, text });
        };
        let report =
            Report::read(&path).with_context(|| format!("the simulation wrote no report: {status}"))?;
        let text = report.figures.into_iter().map(|(_, figure)| figure).collect();
        Ok(Hunt {
            found: report.violations.into_iter().next(),
            text,
        })
    }

    /// Does `work` with the patch applied, and reverts the patch.
    pub(super) fn with<T>(
        &self,
        patch: &Patch,
        work: impl FnOnce(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        self.apply(patch, &[])?;
        let done = work(self);
        self.apply(patch, &["--reverse"])?;
        done
    }

    fn apply(&self, patch: &Patch, more: &[&str]) -> anyhow::Result<()> {
        shell::output(git(&self.root).arg("apply").args(more).arg(&patch.path))?;
        Ok(())
    }
}
