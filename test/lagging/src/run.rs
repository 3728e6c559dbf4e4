//! Runs of all schedules side by side, within a time limit, and their report.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use olm_proof::{Progress, Report, Violation};
use olm_simulation::{Ending, Outcome, Scenario, Schedule, Stage};
use parking_lot::Mutex;

use crate::jobs::{base, singles};

/// Lags to try, in events that a watch keeps back at most. Exploration without a lag is the part `explore` of the proof.
const LAGS: [usize; 3] = [1, 2, 3];
/// Number of violations that a report shows.
const SHOWN: usize = 100;

/// Name of the count of calls.
const CALLS: &str = "calls";

/// Returns the name of the count of runs with this lag.
fn of_lag(lag: usize) -> String {
    format!("single faults with a lag of up to {lag}")
}

/// A run to do.
struct Job<'a> {
    scenario: &'a Scenario,
    schedule: Schedule,
}

/// Results so far.
struct Results {
    progress: Progress,
    /// Violations of this command. Their runs are not done, so the next command repeats them.
    violations: Vec<Violation>,
}

/// Runs every single fault of the scenarios with each lag, until the time is over, and returns the report. Runs that `progress` has
/// are not repeated: the code, the scenarios and their order determine the number of a run.
///
/// # Errors
/// The simulated API server does not start.
pub(crate) fn all(
    stage: &Stage,
    scenarios: &[Scenario],
    limit: Duration,
    progress: Progress,
) -> anyhow::Result<Report> {
    let end = Instant::now() + limit;
    let jobs = jobs(stage, scenarios)?;
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Results {
        progress,
        violations: Vec::new(),
    });
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..workers)
            .map(|_| scope.spawn(|| work(stage, &jobs, &next, end, &results)))
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|_| Err(anyhow!("a worker panicked")))
        })
    })?;
    Ok(report(&jobs, results.into_inner()))
}

/// Returns the runs with a fault. They depend on the runs without one, which are not part of the result: the part `explore` has such
/// runs in forty orders for each lag.
fn jobs<'a>(stage: &Stage, scenarios: &'a [Scenario]) -> anyhow::Result<Vec<Job<'a>>> {
    let mut jobs = Vec::new();
    for scenario in scenarios {
        for lag in LAGS {
            let base = base(lag);
            let outcome = stage.run(scenario, &base, Ending::Short, false)?;
            let schedules = singles(&base, &outcome).into_iter();
            jobs.extend(schedules.map(|schedule| Job { scenario, schedule }));
        }
    }
    Ok(jobs)
}

/// Does the runs that are left, one after another.
fn work(
    stage: &Stage,
    jobs: &[Job],
    next: &AtomicUsize,
    end: Instant,
    results: &Mutex<Results>,
) -> anyhow::Result<()> {
    while Instant::now() < end {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(Job { scenario, schedule }) = jobs.get(at) else {
            break;
        };
        if results.lock().progress.is_done(at as u64) {
            continue;
        }
        let outcome = stage.run(scenario, schedule, Ending::Short, false)?;
        results.lock().record(at as u64, schedule.lag, outcome);
    }
    Ok(())
}

impl Results {
    /// Adds the outcome of run number `at`, and prints its violations at once.
    fn record(&mut self, at: u64, lag: usize, outcome: Outcome) {
        if outcome.violations.is_empty() {
            self.progress.pass(at, [of_lag(lag)], false);
            *self.progress.counts.entry(CALLS.to_owned()).or_default() += outcome.calls.len() as u64;
        }
        for violation in outcome.violations {
            eprintln!(
                "VIOLATION {} ({}): {}",
                violation.invariant, violation.seed, violation.text
            );
            self.violations.push(violation);
        }
    }
}

/// Returns the report of all runs so far.
fn report(jobs: &[Job], results: Results) -> Report {
    let Results {
        progress,
        mut violations,
    } = results;
    let done = |name: &str| progress.counts.get(name).copied().unwrap_or_default();
    let mut figures: Vec<(String, String)> = LAGS
        .map(|lag| {
            let name = of_lag(lag);
            let total = jobs.iter().filter(|job| job.schedule.lag == lag).count();
            let figure = format!("{} of {total}", done(&name));
            (name, figure)
        })
        .into();
    figures.push((CALLS.to_owned(), done(CALLS).to_string()));
    figures.push(("violations".to_owned(), violations.len().to_string()));
    violations.truncate(SHOWN);
    Report {
        title: "Single faults while watches lag".to_owned(),
        about: "The scenarios and faults of the exploration, but each watch keeps events back while calls can be answered, and each lag \
                has another order of answers and events."
            .to_owned(),
        figures,
        violations,
        not_covered: [
            "Further orders, and pairs of faults, with a lag: exploration has random ones.",
        ]
        .map(ToOwned::to_owned)
        .into(),
        state: serde_json::to_value(progress).unwrap_or_default(),
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use olm_simulation::scenarios;

    use super::*;

    #[test]
    fn a_run_is_done_once() {
        let stage = Stage::new().unwrap();
        let install = &scenarios()[..1];
        let all = |seconds, progress| all(&stage, install, Duration::from_secs(seconds), progress).unwrap();
        let first = all(5, Progress::of_code("x"));
        assert_eq!(first.violations, []);
        let done = |report: &Report| serde_json::from_value::<Progress>(report.state.clone()).unwrap();
        let (before, said) = Progress::continued(Some(done(&first)), "x");
        assert!(!before.is_empty(), "{said}");
        // Without time, nothing more is done, and what is done stays.
        let second = all(0, before.clone());
        assert_eq!(done(&second).done, before.done);
        assert_eq!(second.figures, first.figures);
    }
}
