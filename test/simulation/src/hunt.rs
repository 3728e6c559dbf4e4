//! Hunt: search for the first violation, on controllers with a planted bug or without. First, every scenario runs without a
//! fault. Then follow random faults, orders and lags. A hunt in a single scenario also tries its single faults and deposed
//! leaders.

use std::fmt;
use std::time::{Duration, Instant};

use olm_proof::{Report, Violation};

use crate::explore::{Job, deposed, overslept, random, shuffle, singles};
use crate::fault::Schedule;
use crate::planted::Bug;
use crate::rng::Rng;
use crate::run::{Options, Outcome};
use crate::scenario::Scenario;
use crate::simulate::{Ending, Stage};

/// Number of random schedules that are made at a time.
const BATCH: usize = 64;

/// Result of a hunt.
pub(crate) struct Hunt {
    /// The first violation, if there is one.
    pub(crate) violation: Option<Violation>,
    /// Number of runs, the one with the violation included.
    runs: usize,
    /// Time that the hunt took.
    time: Duration,
}

impl fmt::Display for Hunt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (runs, seconds) = (self.runs, self.time.as_secs_f64());
        match &self.violation {
            Some(found) => {
                let Violation { invariant, seed, .. } = found;
                write!(f, "found by {invariant} in run {runs} ({seed}), {seconds:.1} s")
            }
            None => write!(f, "not found in {runs} runs, {seconds:.1} s"),
        }
    }
}

/// Hunts for a violation in `scenarios` for at most `limit`, on controllers with `bug` if one is given.
pub(crate) fn hunt(
    stage: &Stage,
    scenarios: &[Scenario],
    bug: Option<Bug>,
    seed: u64,
    limit: Duration,
) -> Hunt {
    let start = Instant::now();
    let mut hunt = Hunt {
        violation: None,
        runs: 0,
        time: Duration::ZERO,
    };
    hunt.violation = search(stage, scenarios, bug, seed, start + limit, &mut hunt.runs);
    hunt.time = start.elapsed();
    hunt
}

/// Hunts on the controllers as they are, and reports the first violation. `cargo xtask planted` runs this on code with a planted
/// bug, where a violation is the wanted result.
#[must_use]
pub fn report(stage: &Stage, scenarios: &[Scenario], seed: u64, limit: Duration) -> Report {
    let hunt = hunt(stage, scenarios, None, seed, limit);
    Report {
        title: "Hunt".to_owned(),
        about: "The simulation runs its scenarios until an invariant or a check breaks.".to_owned(),
        figures: vec![("hunt".to_owned(), hunt.to_string())],
        violations: hunt.violation.into_iter().collect(),
        ..Report::default()
    }
}

/// Runs schedules up to the first violation or until `until`, and counts the runs.
fn search(
    stage: &Stage,
    scenarios: &[Scenario],
    bug: Option<Bug>,
    seed: u64,
    until: Instant,
    runs: &mut usize,
) -> Option<Violation> {
    let options = Options {
        bug,
        ..Options::default()
    };
    let mut bases = Vec::new();
    for scenario in scenarios {
        if Instant::now() >= until {
            return None;
        }
        let run = stage.run_with(scenario, &Schedule::default(), Ending::QuietHour, options.clone());
        *runs += 1;
        let outcome = run.ok()?;
        if let Some(violation) = first(&outcome) {
            return Some(violation);
        }
        bases.push(Some(outcome));
    }
    let chosen = scenarios.len() == 1;
    let mut few = chosen
        .then(|| singles_and_deposed(&bases, seed))
        .into_iter()
        .flatten();
    for round in 0.. {
        let random = random(&bases, seed.wrapping_add(round), BATCH);
        for job in few.by_ref().take(BATCH).chain(random) {
            if Instant::now() >= until {
                return None;
            }
            let run = stage.run_with(
                scenarios.get(job.scenario)?,
                &job.schedule,
                job.ending,
                options.clone(),
            );
            *runs += 1;
            if let Some(violation) = first(&run.ok()?) {
                return Some(violation);
            }
        }
    }
    None
}

/// Returns the single faults and the deposed leaders of the bases, shuffled. Every third run is that of a leader that misses steps of
/// users, as long as there are some.
fn singles_and_deposed(bases: &[Option<Outcome>], seed: u64) -> Vec<Job> {
    let (mut jobs, _) = singles(bases, &Schedule::default());
    jobs.extend(deposed(bases));
    shuffle(&mut jobs, &mut Rng::new(seed));
    let mut late = overslept(bases).into_iter();
    let mut out = Vec::new();
    for pair in jobs.chunks(2) {
        out.extend_from_slice(pair);
        out.extend(late.next());
    }
    out.extend(late);
    out
}

/// Returns the first violation of a run. Violations of the kind `scenario` are defects of the scenario itself and do not count.
fn first(outcome: &Outcome) -> Option<Violation> {
    let mut all = outcome.violations.iter();
    all.find(|found| found.invariant != "scenario").cloned()
}
