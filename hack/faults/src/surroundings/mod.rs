//! Trouble in the surroundings of the controllers: the control plane, registries, disks, memory and clocks.
//!
//! Each trouble starts in the middle of a change of an extension. The report says which condition users see during the trouble.
//! After its end, the cluster must converge.

mod cache;
mod clock;
mod control_plane;
mod memory;
mod registries;
mod seen;

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use olm_proof::{Report, Violation};
use tokio::time::Instant;

use crate::judge::Judge;
use crate::scenario::Promises;
use crate::{Run, Scenario, Stage, World, convergence};

/// Maximum time from the end of a trouble to convergence.
const LIMIT: Duration = Duration::from_mins(4);
/// Time without a write after which the cluster counts as quiet.
const QUIET: Duration = Duration::from_secs(1);

/// A trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Trouble {
    /// The API server restarts during an installation.
    ApiServerRestarts,
    /// etcd stops for 20 seconds during an upgrade.
    EtcdStops,
    /// kube-controller-manager is absent during an installation.
    NoControllerManager,
    /// The disk of catalogd's cache is full.
    CatalogdDiskFull,
    /// The disk of operator-controller's cache is full.
    ControllerDiskFull,
    /// catalogd's cache is read-only.
    CatalogdReadOnly,
    /// operator-controller's cache is read-only.
    ControllerReadOnly,
    /// Every file of catalogd's cache has a wrong bit.
    CatalogdCorrupted,
    /// Every file of operator-controller's cache has a wrong bit.
    ControllerCorrupted,
    /// catalogd gets no more memory.
    CatalogdMemory,
    /// operator-controller gets no more memory.
    ControllerMemory,
    /// The clock of both programs jumps a day ahead, and to an hour ago.
    ClockJumps,
    /// Registries send wrong content, redirect, or send slowly.
    Registries,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ApiServerRestarts => "API server restarted during an installation",
            Self::EtcdStops => "etcd stopped for 20 s during an upgrade",
            Self::NoControllerManager => "kube-controller-manager absent during an installation",
            Self::CatalogdDiskFull => "disk of catalogd full",
            Self::ControllerDiskFull => "disk of operator-controller full",
            Self::CatalogdReadOnly => "cache of catalogd read-only",
            Self::ControllerReadOnly => "cache of operator-controller read-only",
            Self::CatalogdCorrupted => "a wrong bit in every file of catalogd's cache",
            Self::ControllerCorrupted => "a wrong bit in every file of operator-controller's cache",
            Self::CatalogdMemory => "no more memory for catalogd",
            Self::ControllerMemory => "no more memory for operator-controller",
            Self::ClockJumps => "clock a day ahead during an installation, an hour behind during an upgrade",
            Self::Registries => "registries that lie",
        })
    }
}

/// Options of the troubles.
#[derive(Args, Clone, Debug, Default)]
pub struct Options {
    /// Trouble to make; repeatable. Without it, all troubles.
    #[arg(long, value_enum)]
    pub only: Vec<Trouble>,
}

/// Results of the troubles so far.
#[derive(Debug, Default)]
struct Figures {
    lines: Vec<(String, String)>,
    violations: Vec<Violation>,
    /// A sentence about each trouble that this machine cannot produce.
    skipped: Vec<String>,
}

impl Figures {
    /// Adds the result of a trouble: the condition that users saw, and the time until the cluster converged.
    fn add(&mut self, name: &str, result: Result<(String, Duration)>) {
        match result {
            Ok((seen, after)) => {
                let text = format!("converged in {:.1} s; seen: {seen}", after.as_secs_f64());
                eprintln!("{name}: {text}");
                self.lines.push((name.to_owned(), text));
            }
            Err(error) => {
                eprintln!("{name}: LOST {error:#}");
                self.lines.push((name.to_owned(), "lost".to_owned()));
                self.violations.push(violation(name, &format!("{error:#}")));
            }
        }
    }
}

fn violation(name: &str, text: &str) -> Violation {
    Violation {
        invariant: "convergence".to_owned(),
        seed: name.to_owned(),
        text: text.to_owned(),
    }
}

/// Goes through the selected troubles and returns the report. Prints one line per trouble to stderr.
///
/// # Errors
/// The environment fails. A cluster that does not converge is no error but a violation in the report.
pub async fn run(run: &Run, options: &Options) -> Result<Report> {
    let Run {
        programs,
        promises,
        seed,
        ..
    } = run;
    let (promises, seed) = (*promises, *seed);
    let chosen = |trouble: &Trouble| options.only.is_empty() || options.only.contains(trouble);
    let mut figures = Figures::default();
    let troubles: Vec<Trouble> = Trouble::value_variants().iter().copied().filter(chosen).collect();
    let (registries, others): (Vec<Trouble>, Vec<Trouble>) = troubles
        .into_iter()
        .partition(|trouble| *trouble == Trouble::Registries);
    if !others.is_empty() {
        let mut world = World::start(programs).await?;
        for (number, trouble) in others.into_iter().enumerate() {
            if let Some(reason) = missing(trouble) {
                eprintln!("SKIPPED {trouble}: {reason}");
                figures.skipped.push(format!("{trouble} is skipped: {reason}."));
                continue;
            }
            let mut judge = Judge::start(&world, promises).await?;
            let id = format!("t{seed:x}-{number}");
            let result = Box::pin(meet(&mut world, trouble, &id, promises)).await;
            let failed = result.is_err();
            figures.add(&trouble.to_string(), result);
            let mut violations = judge.violations(&trouble.to_string()).await;
            if matches!(trouble, Trouble::ApiServerRestarts | Trouble::EtcdStops) {
                // These end the watches of the observer as well.
                violations.retain(|violation| violation.invariant != "observation");
            }
            figures.violations.extend(violations);
            if failed {
                revive(&mut world).await?;
            }
        }
    }
    if !registries.is_empty() {
        registries::run(&mut figures).await?;
    }
    let report = report(figures, seed);
    if let Some(path) = &run.report {
        report
            .write(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(report)
}

/// Returns the reason why this machine cannot produce the trouble; `None` if it can.
fn missing(trouble: Trouble) -> Option<String> {
    match trouble {
        Trouble::ClockJumps => clock::missing(),
        _ => cache::missing(trouble),
    }
}

/// Restarts both programs without wrappers and extra arguments, so that the next trouble starts from a sound state.
async fn revive(world: &mut World) -> Result<()> {
    for program in [&mut world.catalogd, &mut world.controller] {
        program.kill()?;
        program.set_wrapper(Vec::new());
        program.set_more_args(Vec::new());
        program.start().await?;
    }
    Ok(())
}

/// Runs a scenario with one trouble. Returns the condition that users saw, and the time from the end of the trouble to
/// convergence.
async fn meet(
    world: &mut World,
    trouble: Trouble,
    id: &str,
    promises: Promises,
) -> Result<(String, Duration)> {
    let mut scenario = Scenario::publish(world, id, promises).await?;
    if ![Trouble::CatalogdDiskFull, Trouble::CatalogdReadOnly].contains(&trouble) {
        seen::wait_for_catalog(&world.client(), &scenario.catalog()).await?;
    }
    let seen = match trouble {
        Trouble::ApiServerRestarts => control_plane::restart_api_server(world, &mut scenario).await,
        Trouble::EtcdStops => control_plane::stop_etcd(world, &mut scenario).await,
        Trouble::NoControllerManager => control_plane::no_controller_manager(world, &mut scenario).await,
        Trouble::CatalogdDiskFull => cache::catalogd_without_disk(world, &mut scenario, cache::FULL).await,
        Trouble::CatalogdReadOnly => {
            cache::catalogd_without_disk(world, &mut scenario, cache::READ_ONLY).await
        }
        Trouble::ControllerDiskFull => {
            cache::controller_without_disk(world, &mut scenario, cache::FULL).await
        }
        Trouble::ControllerReadOnly => {
            cache::controller_without_disk(world, &mut scenario, cache::READ_ONLY).await
        }
        Trouble::CatalogdCorrupted => cache::corrupt_catalogd(world, &mut scenario).await,
        Trouble::ControllerCorrupted => cache::corrupt_controller(world, &mut scenario).await,
        Trouble::CatalogdMemory => memory::limit_catalogd(world, &mut scenario).await,
        Trouble::ControllerMemory => memory::limit_controller(world, &mut scenario).await,
        Trouble::ClockJumps => clock::jump(world, &mut scenario).await,
        Trouble::Registries => Ok(String::new()),
    }?;
    let ended = Instant::now();
    reach(world, &scenario).await?;
    let after = ended.elapsed().saturating_sub(QUIET);
    let client = world.client();
    scenario.perform(&client, Stage::Uninstall).await?;
    reach(world, &scenario)
        .await
        .context("after the trouble, the extension is not removed")?;
    scenario.retire(&client).await?;
    Ok((seen, after))
}

/// Waits for convergence, and checks that both programs run.
async fn reach(world: &mut World, scenario: &Scenario) -> Result<()> {
    let expectation = scenario.expectation();
    convergence::reach(&world.client(), &world.ledger, &expectation, LIMIT, QUIET).await?;
    world.controller.check()?;
    world.catalogd.check()
}

/// Makes the report of all troubles.
fn report(figures: Figures, seed: u64) -> Report {
    let mut not_covered = figures.skipped;
    not_covered.extend([
        "A clock that jumps for the API server, too: only the controllers see the other time.".to_owned(),
        "A disk that is full or read-only ends with a restart of the program; its folder is another file system meanwhile.".to_owned(),
    ]);
    Report {
        title: "Broken surroundings".to_owned(),
        about: "One thing around the controllers breaks in the middle of a change: control plane, registry, disk or memory. The line of each \
                has the time from the end of the trouble to the state that the spec determines, and the condition that users saw."
            .to_owned(),
        figures: figures.lines,
        violations: figures.violations,
        not_covered,
        command: format!("faults surroundings --seed {seed}"),
        ..Report::default()
    }
}
