//! `kill -9` of a controller at random moments of a stage: the controller starts again, and the cluster reaches its state.

mod figures;
mod stages;
mod unpack;

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use olm_proof::Report;
use tokio::time::Instant;

use crate::judge::Judge;
use crate::scenario::Promises;
use crate::{Commands, Stage, World};

use figures::Figures;

/// Stage in which a controller is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Killed {
    /// operator-controller installs an extension.
    Install,
    /// operator-controller upgrades it.
    Upgrade,
    /// operator-controller rolls it back.
    Rollback,
    /// operator-controller removes it.
    Uninstall,
    /// catalogd stores the first or another content of a catalog.
    Unpack,
}

impl Killed {
    /// The stages of an extension, in the order of its life.
    const OF_EXTENSIONS: [Self; 4] = [Self::Install, Self::Upgrade, Self::Rollback, Self::Uninstall];

    /// Returns the change by the user; `None` for a catalog.
    fn stage(self) -> Option<Stage> {
        match self {
            Self::Install => Some(Stage::Install),
            Self::Upgrade => Some(Stage::Upgrade),
            Self::Rollback => Some(Stage::RollBack),
            Self::Uninstall => Some(Stage::Uninstall),
            Self::Unpack => None,
        }
    }
}

impl fmt::Display for Killed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::Rollback => "rollback",
            Self::Uninstall => "uninstall",
            Self::Unpack => "unpack",
        })
    }
}

/// Options of the kills.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Number of moments in each stage.
    #[arg(long, default_value_t = 10)]
    pub moments: u32,
    /// Kills only in this stage.
    #[arg(long, value_enum)]
    pub stage: Option<Killed>,
    /// Starts no further extension or catalog after this number of seconds.
    #[arg(long)]
    pub limit_seconds: Option<u64>,
    /// Longest time in seconds from the kill until the cluster is in its state.
    #[arg(long, default_value_t = 120)]
    pub limit: u64,
    /// Time in milliseconds without a write that counts as rest.
    #[arg(long, default_value_t = 500)]
    pub quiet: u64,
}

impl Options {
    fn kills_in(&self, stage: Killed) -> bool {
        self.stage.is_none_or(|only| only == stage)
    }

    /// Returns true if the run has lasted long enough.
    fn is_over(&self, begin: Instant) -> bool {
        let limit = self.limit_seconds.map(Duration::from_secs);
        limit.is_some_and(|limit| begin.elapsed() >= limit)
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.limit)
    }

    fn quiet(&self) -> Duration {
        Duration::from_millis(self.quiet)
    }
}

/// Kills the controllers, and returns the report. Prints a line for each moment to stderr.
///
/// # Errors
/// The environment fails; a cluster that does not reach its state is a violation in the report.
pub async fn run(commands: &Commands, options: &Options, seed: u64, promises: Promises) -> Result<Report> {
    let mut world = World::start(commands).await?;
    let mut judge = Judge::start(&world.client(), world.ledger.clone(), promises).await?;
    let mut figures = Figures::default();
    if options.stage != Some(Killed::Unpack) {
        stages::run(&mut world, &mut judge, options, seed, promises, &mut figures).await?;
    }
    if options.kills_in(Killed::Unpack) {
        unpack::run(&mut world, &mut judge, options, seed, &mut figures).await?;
    }
    figures.changes = judge.changes();
    let only = options
        .stage
        .map_or_else(String::new, |stage| format!(" --stage {stage}"));
    Ok(figures.report(format!(
        "faults moments --moments {} --seed {seed}{only}",
        options.moments
    )))
}
