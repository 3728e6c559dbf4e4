//! The copy of the workspace in which bugs are planted, and its simulation.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use olm_proof::{Report, Violation};

use super::limit::wait;
use super::patch::Patch;
use crate::code::Checkout;
use crate::prove::tool::{self, PROFILE, Tool};
use crate::shell::{self, git};

/// Maximum processor time of the hunt for one bug.
const LIMIT: Duration = Duration::from_mins(1);
/// Maximum duration of the hunt for one bug by the clock, in case the machine is busy with other work.
const WALL: Duration = Duration::from_mins(20);

/// A copy of the workspace. Its files and what cargo built from them stay for the next run of the chore, so that only changed crates are
/// built.
pub(super) struct Tree {
    /// Folder for the simulation and its report.
    folder: PathBuf,
    root: PathBuf,
    /// Names of the workspace's crates.
    crates: Vec<String>,
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
    pub(super) fn copy(checkout: &Checkout) -> anyhow::Result<Self> {
        let folder = shell::target_dir().join("planted");
        let tree = Self {
            root: folder.join("tree"),
            folder,
            crates: checkout.packages.names().map(str::to_owned).collect(),
        };
        checkout.files.write(&tree.root)?;
        Ok(tree)
    }

    /// Builds the simulation.
    ///
    /// External crates are those of the build of the proof, optimised. The workspace's crates are built incrementally at
    /// optimisation level 1, because each bug needs a build: builds and hunts together take the least time with it.
    pub(super) fn build(&self) -> anyhow::Result<()> {
        let mut command = tool::build();
        command
            .current_dir(&self.root)
            .args(["--bin", Tool::Simulate.program()])
            .args(
                self.crates
                    .iter()
                    .map(|name| format!("--config=profile.{PROFILE}.package.{name}.opt-level=1")),
            )
            .env("CARGO_TARGET_DIR", shell::target_dir())
            .env("CARGO_INCREMENTAL", "1");
        let status = command.status().context("cannot start cargo")?;
        if !status.success() {
            bail!("the simulation does not build");
        }
        // Nobody takes a program with a bug for that of the checkout, which the next call of cargo puts there.
        let (built, program) = (tool::folder().join(Tool::Simulate.program()), self.program());
        fs::rename(&built, &program).with_context(|| format!("cannot move {}", built.display()))
    }

    /// Returns the path of the simulation.
    fn program(&self) -> PathBuf {
        self.folder.join(Tool::Simulate.program())
    }

    /// Hunts for the first violation, in one scenario or in all of them.
    pub(super) fn hunt(&self, scenario: Option<&str>) -> anyhow::Result<Hunt> {
        let path = self.folder.join("hunt.json");
        if path.exists() {
            fs::remove_file(&path)?;
        }
        let mut command = Command::new(self.program());
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
