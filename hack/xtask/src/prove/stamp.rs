//! Commit, code, date and duration of a part's run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context as _;
use olm_proof::{Ran, Report};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::part::{self, Part};
use crate::code::Checkout;
use crate::shell::{self, root};

/// Flags of a chore whose results add up over its runs.
#[derive(clap::Args)]
pub(crate) struct Adding {
    /// Forget the results of earlier runs of what is selected.
    #[arg(long)]
    pub(crate) anew: bool,
    /// Continue from the results in this file, and write the result to it as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// Stamp of a run that is under way, with what it shares with earlier runs whose results it adds to.
pub(crate) struct Stamp {
    ran: Ran,
    begin: Instant,
}

impl Stamp {
    /// Starts the run of a part, and returns its state in the report `earlier`; the default without a report, or if the run is `anew`.
    ///
    /// # Errors
    /// Git or cargo fails, or the report has a state of another kind.
    pub(crate) fn start<S: DeserializeOwned + Default>(
        part: &Part,
        earlier: Option<&Path>,
        anew: bool,
        checkout: &Checkout,
    ) -> anyhow::Result<(Self, S)> {
        let earlier = earlier.filter(|_| !anew).and_then(|path| Report::read(path).ok());
        let Report { ran, state, .. } = earlier.unwrap_or_default();
        let ran = Ran {
            commit: commit()?,
            seconds: ran.map_or(0, |ran| ran.seconds),
            code: part.digests(checkout)?,
            ..Ran::default()
        };
        let state = match state {
            Value::Null => S::default(),
            state => serde_json::from_value(state)?,
        };
        let begin = Instant::now();
        Ok((Self { ran, begin }, state))
    }

    /// Starts the run of the chore that is a part by this name. Only a run of all that there is can forget all results.
    ///
    /// # Errors
    /// As for [`Stamp::start`].
    pub(crate) fn of_chore<S: DeserializeOwned + Default>(
        part: &str,
        adding: &Adding,
        runs_all: bool,
        checkout: &Checkout,
    ) -> anyhow::Result<(Self, S)> {
        let anew = adding.anew && runs_all;
        Self::start(part::named(part)?, adding.report.as_deref(), anew, checkout)
    }

    /// Returns the stamp of the run up to now.
    pub(crate) fn ran(&self) -> Ran {
        Ran {
            date: jiff::Zoned::now().date().to_string(),
            seconds: self.ran.seconds + self.begin.elapsed().as_secs(),
            ..self.ran.clone()
        }
    }

    /// Writes the report of the run up to now, with the state that a later run continues from; without a path, does nothing.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn save(
        &self,
        report: Report,
        state: impl Serialize,
        path: Option<&Path>,
    ) -> anyhow::Result<()> {
        let Some(path) = path else {
            return Ok(());
        };
        let stamped = Report {
            ran: Some(self.ran()),
            state: serde_json::to_value(state)?,
            ..report
        };
        stamped
            .write(path)
            .with_context(|| format!("cannot write the report {}", path.display()))
    }
}

/// Returns the commit of the checkout, with a mark if files differ from it.
fn commit() -> anyhow::Result<String> {
    let git = |args: &[&str]| shell::output(Command::new("git").current_dir(root()).args(args));
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    // The reports themselves are written while parts run.
    let changed = git(&[
        "status",
        "--porcelain",
        "--untracked-files=no",
        "--",
        ".",
        ":!docs/proof",
        ":!docs/proof.md",
    ])?;
    let mark = if changed.is_empty() { "" } else { " with changes" };
    Ok(format!("{}{mark}", commit.trim()))
}
