//! A run of a part: the programs under test, the facts to rely on, and the report.

use std::path::PathBuf;

use anyhow::Result;
use olm_proof::Report;
use tokio::sync::Mutex;

use crate::results::Tally;
use crate::scenario::Promises;
use crate::{Judge, Programs, Results, World};

/// A run of a part.
#[derive(Debug)]
pub struct Run {
    /// The programs under test.
    pub programs: Programs,
    /// Facts to rely on.
    pub promises: Promises,
    /// Seed of the first case.
    pub seed: u64,
    /// Number of cases that run at the same time, each on a control plane of its own.
    pub workers: usize,
    /// File for the report. If it has one of the same code with the same settings, its results are kept and added to.
    pub report: Option<PathBuf>,
    /// Digest of the code under test and of this crate; empty if it is not known.
    pub code: String,
    /// One control plane starts after the other: all at once take longer than a start may last.
    pub starting: Mutex<()>,
}

impl Run {
    /// Returns a run of one worker without a report.
    #[must_use]
    pub fn new(programs: Programs, promises: Promises, seed: u64) -> Self {
        Self {
            programs,
            promises,
            seed,
            workers: 1,
            report: None,
            code: String::new(),
            starting: Mutex::new(()),
        }
    }

    /// Starts a control plane with the programs, and an observer.
    ///
    /// # Errors
    /// A component does not start.
    pub async fn start(&self) -> Result<(World, Judge)> {
        let _one = self.starting.lock().await;
        let world = Box::pin(World::start(&self.programs)).await?;
        let judge = Judge::start(&world.client(), world.ledger.clone(), self.promises).await?;
        Ok((world, judge))
    }

    /// Opens the results that are kept at `path`. `settings` are the options that change what a case does.
    #[must_use]
    pub fn results(&self, path: Option<PathBuf>, settings: &str, describe: fn(&Tally) -> Report) -> Results {
        let code = match self.code.as_str() {
            "" => String::new(),
            code => format!("{code}; {:?}; {settings}", self.promises),
        };
        Results::open(path, code, describe)
    }
}
