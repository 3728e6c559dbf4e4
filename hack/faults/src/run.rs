//! A run of one part of this crate: the programs under test, the promises that they make, and the report.

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
    /// Facts that the expectations rely on.
    pub promises: Promises,
    /// Seed of the first case.
    pub seed: u64,
    /// Number of cases that run at the same time, each on a control plane of its own.
    pub workers: usize,
    /// File for the report. If it contains a report about the same code and settings, the run continues it.
    pub report: Option<PathBuf>,
    /// Digest of the code under test and of this crate; empty if it is unknown.
    pub code: String,
    /// Lock for the start of a control plane. If all control planes started at once, a start would exceed its limit.
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

    /// Starts a control plane with the programs, and a judge over it.
    ///
    /// # Errors
    /// A component does not start.
    pub async fn start(&self) -> Result<(World, Judge)> {
        let _one = self.starting.lock().await;
        let world = Box::pin(World::start(&self.programs)).await?;
        let judge = Judge::start(&world, self.promises).await?;
        Ok((world, judge))
    }

    /// Opens the results in the report at `path`. `settings` are the options that change what a case does.
    #[must_use]
    pub fn results(&self, path: Option<PathBuf>, settings: &str, describe: fn(&Tally) -> Report) -> Results {
        let code = match self.code.as_str() {
            "" => String::new(),
            code => format!("{code}; {:?}; {settings}", self.promises),
        };
        Results::open(path, code, describe)
    }
}
