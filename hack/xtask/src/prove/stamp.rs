//! Stamp of a part's run: commit, code, date and duration.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use olm_proof::{Ran, Report};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::part::{self, Part};
use crate::code::Checkout;
use crate::shell::git_output;

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

/// Stamp of a run in progress. Its duration includes earlier runs to whose results this run adds.
pub(crate) struct Stamp {
    ran: Ran,
    begin: Instant,
}

impl Stamp {
    /// Starts the run of a part. Returns its stamp, and the state in the report `earlier` to continue from. Without a report, or
    /// with `anew`, this is the default state.
    ///
    /// # Errors
    /// Git or cargo fails, or the report has a state of another type.
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

    /// Starts the run of a chore that is the part of this name. `--anew` forgets the whole state only if the run covers all items
    /// of the chore.
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

    /// Returns the stamp for the report, with the date and duration up to now.
    pub(crate) fn ran(&self) -> Ran {
        Ran {
            date: jiff::Zoned::now().date().to_string(),
            seconds: self.ran.seconds + self.begin.elapsed().as_secs(),
            ..self.ran.clone()
        }
    }

    /// Writes the report of the run up to now, with the state from which a later run continues. Does nothing without a path.
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
    let commit = git_output(&["rev-parse", "--short=10", "HEAD"])?;
    // Reports are written while parts run, so they do not count as changes.
    let changed = git_output(&[
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
