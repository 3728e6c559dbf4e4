//! Exploration: fault-free runs, all single faults, orders and lags, deposed leaders, pairs and triples of faults.

mod jobs;

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use olm_proof::Report;
use parking_lot::Mutex;

pub(crate) use self::jobs::random;
use self::jobs::{Job, any_fault, deposed, job, shuffle, singles};
use crate::fault::Schedule;
use crate::rng::Rng;
use crate::run::Outcome;
use crate::scenario::{Scenario, all};
use crate::simulate::{Ending, Stage};
use crate::tally::Tally;

/// Pairs per single fault that led to a new state.
const SECONDS_PER_FIRST: usize = 12;
/// Seeds of orders and lags for each scenario and lag.
const SEEDS: u64 = 40;

/// An exploration that is under way.
struct Explorer<'a> {
    stage: &'a Stage,
    scenarios: Vec<Scenario>,
    seed: u64,
    start: Instant,
    limit: Duration,
    /// Percent of the time after which the single faults end.
    share: u32,
    tally: Mutex<Tally>,
    figures: Vec<(String, String)>,
}

/// Explores for about `limit`, all scenarios or one. The single faults may take `share` percent of the time.
#[must_use]
pub fn explore(stage: &Stage, seed: u64, limit: Duration, share: u32, only: Option<&str>) -> Report {
    let scenarios = all()
        .into_iter()
        .filter(|known| only.is_none_or(|only| known.name == only));
    let mut explorer = Explorer {
        stage,
        scenarios: scenarios.collect(),
        seed,
        start: Instant::now(),
        limit,
        share: share.min(100),
        tally: Mutex::default(),
        figures: Vec::new(),
    };
    explorer.all();
    let Explorer {
        tally, mut figures, ..
    } = explorer;
    let tally = tally.into_inner();
    figures.extend(tally.figures());
    Report {
        title: "Faults, lag and deposed leaders in simulation".to_owned(),
        about: "The production controllers run on the simulated API server, with virtual time and a seeded scheduler. Every call of \
                theirs waits for the scheduler, which answers it, loses it, delays it, refuses it, or ends the process."
            .to_owned(),
        figures,
        violations: tally.violations(),
        not_covered: [
            "Calls to the API server are the smallest steps: what a process does between two calls happens at once.",
            "Pods, images and catalogd are stand-ins; their own parts of the proof cover them.",
            "At most two processes run at once, and the time of all processes is the same.",
        ]
        .map(ToOwned::to_owned)
        .into(),
        ..Report::default()
    }
}

impl Explorer<'_> {
    fn all(&mut self) {
        let schedule = Schedule::default;
        let scenarios = 0..self.scenarios.len();
        let quiet: Vec<Job> = scenarios
            .map(|scenario| job(scenario, schedule(), Ending::QuietHour))
            .collect();
        let bases = self.run("scenarios without a fault, each with a quiet hour", &quiet, 100);

        let (singles, equal) = singles(&bases);
        let outcomes = self.run("single faults", &singles, self.share);
        let name = "crashes that leave the same cluster behind as another one, left out";
        self.figures.push((name.to_owned(), equal.to_string()));
        // The rest of the time is shared by the others.
        let until = |percent: u32| self.share + (100 - self.share) * percent / 100;
        let (lags, leaders, doubles) = (until(20), until(50), until(80));
        let lagging = self.lagging();
        self.run(
            "seeded orders of answers and events, with a lag of 0 to 3",
            &lagging,
            lags,
        );
        let deposed = deposed(&bases);
        self.run("leaders deposed in the middle of a call", &deposed, leaders);

        let (pairs, known) = self.pairs(&singles, &outcomes);
        self.run("pairs of faults", &pairs, doubles);
        let name = "single faults whose pairs are left out, as they lead to a known state";
        self.figures.push((name.to_owned(), known.to_string()));

        let mut done = 0;
        for round in 0.. {
            if self.start.elapsed() >= self.limit || bases.is_empty() {
                break;
            }
            let jobs = random(&bases, self.seed.wrapping_add(round), 64);
            done += self.run_all(&jobs, 100).iter().flatten().count();
        }
        let name = "random schedules of three faults, order and lag";
        self.figures.push((name.to_owned(), done.to_string()));
    }

    /// Runs the jobs until `share` percent of the time are over.
    fn run(&mut self, name: &str, jobs: &[Job], share: u32) -> Vec<Option<Outcome>> {
        let outcomes = self.run_all(jobs, share);
        let done = outcomes.iter().flatten().count();
        let text = if done == jobs.len() {
            format!("{done} (all)")
        } else {
            format!("{done} of {}", jobs.len())
        };
        tracing::info!(name, text, seconds = self.start.elapsed().as_secs(), "explored");
        self.figures.push((name.to_owned(), text));
        outcomes
    }

    fn run_all(&self, jobs: &[Job], share: u32) -> Vec<Option<Outcome>> {
        let until = self.start + self.limit * share / 100;
        let next = AtomicUsize::new(0);
        let outcomes: Vec<Mutex<Option<Outcome>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let (Some(job), Some(slot)) = (jobs.get(at), outcomes.get(at)) else {
                    return;
                };
                let Some(scenario) = self
                    .scenarios
                    .get(job.scenario)
                    .filter(|_| Instant::now() < until)
                else {
                    return;
                };
                if let Ok(mut outcome) = self.stage.run(scenario, &job.schedule, job.ending, false) {
                    if let Some(first) = outcome.violations.first() {
                        tracing::warn!(seed = first.seed, first.invariant, first.text, "violation");
                    }
                    self.tally.lock().add(&outcome);
                    outcome.states = HashSet::new();
                    *slot.lock() = Some(outcome);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
        outcomes.into_iter().map(Mutex::into_inner).collect()
    }

    /// Seeded orders, with every lag.
    fn lagging(&self) -> Vec<Job> {
        let mut out = Vec::new();
        for seed in 1..=SEEDS {
            for lag in 0..=3 {
                for scenario in 0..self.scenarios.len() {
                    let schedule = Schedule {
                        seed: self.seed.wrapping_mul(1000).wrapping_add(seed),
                        lag,
                        ..Schedule::default()
                    };
                    out.push(job(scenario, schedule, Ending::Short));
                }
            }
        }
        out
    }

    /// Second faults after each single fault that led to a state of its own, in a seeded order.
    fn pairs(&self, singles: &[Job], outcomes: &[Option<Outcome>]) -> (Vec<Job>, usize) {
        let mut rng = Rng::new(self.seed);
        let mut seen = HashSet::new();
        let mut known = 0;
        let mut out = Vec::new();
        for (single, outcome) in singles.iter().zip(outcomes) {
            let Some(outcome) = outcome else {
                continue;
            };
            if !seen.insert((single.scenario, outcome.after_fault)) {
                known += 1;
                continue;
            }
            let Some(first) = single.schedule.faults.keys().next() else {
                continue;
            };
            for _ in 0..SECONDS_PER_FIRST {
                let later = outcome.calls.len().saturating_sub(first + 1);
                let at = first + 1 + rng.below(later);
                if let Some(fault) = any_fault(&mut rng, outcome, at) {
                    let mut schedule = single.schedule.clone();
                    schedule.faults.insert(at, fault);
                    out.push(job(single.scenario, schedule, Ending::Short));
                }
            }
        }
        shuffle(&mut out, &mut rng);
        (out, known)
    }
}
