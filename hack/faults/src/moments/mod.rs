//! `kill -9` of a controller at random moments: the controller is restarted, and the cluster must converge.
//!
//! A moment is the time from the change by the user to the kill. `stages` kills operator-controller in the stages of an
//! extension, and `unpack` kills catalogd while it stores the content of a catalog.

mod figures;
mod stages;
mod unpack;

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use olm_proof::Report;
use parking_lot::Mutex;

use crate::pool::{self, Queue};
use crate::seeded::Seeded;
use crate::{Judge, Results, Run, Stage};

use figures::Case;
use unpack::Contents;

/// Name of the series of extensions in a tally.
const EXTENSIONS: &str = "extensions";
/// Name of the series of catalogs in a tally.
const CATALOGS: &str = "catalogs";

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
    /// All stages.
    const ALL: [Self; 5] = [
        Self::Install,
        Self::Upgrade,
        Self::Rollback,
        Self::Uninstall,
        Self::Unpack,
    ];
    /// The stages of an extension, in their order.
    const OF_EXTENSIONS: [Self; 4] = [Self::Install, Self::Upgrade, Self::Rollback, Self::Uninstall];

    /// Returns the moment of a kill, at most `most`. It depends on the seed and on the number of the extension or catalog, but
    /// not on how many moments are requested.
    fn moment(self, seed: u64, number: u64, most: Duration) -> Duration {
        let most = u32::try_from(most.as_millis()).unwrap_or(u32::MAX);
        Seeded::new(seed ^ (number << 8) ^ ((self as u64) << 40)).millis(0, most)
    }

    /// Returns the change by the user of an extension; `None` for the stage of catalogs.
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

    fn limit(&self) -> Duration {
        Duration::from_secs(self.limit)
    }

    fn quiet(&self) -> Duration {
        Duration::from_millis(self.quiet)
    }
}

/// State that the workers share.
struct Shared<'a> {
    run: &'a Run,
    options: &'a Options,
    extensions: Queue,
    catalogs: Queue,
    results: Mutex<Results>,
}

/// Kills the controllers at random moments and returns the report. Prints one line per kill to stderr.
///
/// # Errors
/// The environment fails. A cluster that does not converge is no error but a violation in the report.
pub async fn run(run: &Run, options: &Options) -> Result<Report> {
    let Options {
        moments,
        stage,
        limit,
        quiet,
        ..
    } = *options;
    let only = stage.map_or_else(String::new, |stage| format!(" --stage {stage}"));
    let settings = format!("seed {}{only}, limit {limit} s, quiet {quiet} ms", run.seed);
    let command = format!("faults moments --moments {moments} --seed {}{only}", run.seed);
    let results = run
        .results(run.report.clone(), &settings, figures::describe)
        .with_command(command);
    let limit = options.limit_seconds.map(Duration::from_secs);
    let left = |series, is_part: bool| {
        let count = if is_part { u64::from(moments) } else { 0 };
        Queue::new((0..count).filter(|number| !results.has(series, *number)), limit)
    };
    let extensions = left(EXTENSIONS, stage != Some(Killed::Unpack));
    let catalogs = left(CATALOGS, options.kills_in(Killed::Unpack));
    let workers = run.workers.min(extensions.len() + catalogs.len());
    let shared = Shared {
        run,
        options,
        extensions,
        catalogs,
        results: Mutex::new(results),
    };
    pool::run(workers, || work(&shared)).await?;
    shared.results.lock().save()
}

/// Kills until no extension and no catalog is left. If a cluster does not converge, the next extension or catalog gets a new
/// environment.
async fn work(shared: &Shared<'_>) -> Result<()> {
    let mut place = None;
    while let Some(number) = shared.extensions.take() {
        let (mut world, mut judge, undisturbed) = if let Some(place) = place.take() {
            place
        } else {
            let (world, judge) = shared.run.start().await?;
            let undisturbed = stages::measure(&world, shared.run, shared.options).await?;
            (world, judge, undisturbed)
        };
        let mut case = Case::default();
        let what = (shared.run, shared.options);
        let kept = stages::kill_in(&mut world, &mut judge, what, &undisturbed, number, &mut case).await?;
        shared.add(EXTENSIONS, number, case, &mut judge)?;
        place = kept.then_some((world, judge, undisturbed));
    }
    let mut place = place.map(|(world, judge, _)| (world, judge));
    let mut contents = None;
    while let Some(number) = shared.catalogs.take() {
        let (mut world, mut judge) = match place.take() {
            Some(place) => place,
            None => shared.run.start().await?,
        };
        let published = match contents.take() {
            Some(published) => published,
            None => Contents::measure(&world, shared.options).await?,
        };
        let mut case = Case::default();
        let what = (shared.run, shared.options);
        let kept = unpack::kill_in(&mut world, &mut judge, what, &published, number, &mut case).await?;
        shared.add(CATALOGS, number, case, &mut judge)?;
        if kept {
            (place, contents) = (Some((world, judge)), Some(published));
        }
    }
    Ok(())
}

impl Shared<'_> {
    /// Adds the results of one extension or catalog, and writes the report.
    fn add(&self, series: &str, number: u64, mut case: Case, judge: &mut Judge) -> Result<()> {
        case.tally.end(series, number);
        case.tally.add("changes", judge.take_counts().0);
        self.results.lock().add(&case.tally, case.violations)
    }
}
