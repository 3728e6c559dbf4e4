//! Exploration of all scenarios within a time limit: runs without a fault, every single fault with and without a lag, seeded orders
//! and lags, deposed leaders, pairs and triples of faults. `jobs` derives the schedules, `every_pair` tries all pairs of faults in a few scenarios,
//! and `kept` continues an earlier exploration of the same code.

mod every_pair;
mod jobs;
mod kept;

use std::collections::HashSet;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use olm_proof::Report;
use parking_lot::Mutex;

pub(crate) use self::jobs::{Job, deposed, overslept, random, shuffle, singles};
use self::jobs::{job, seconds, with_lag};
use self::kept::Kept;
use crate::fault::Schedule;
use crate::rng::Rng;
use crate::run::{Options, Outcome};
use crate::scenario::{Scenario, all};
use crate::simulate::{Ending, Stage};

/// Number of random second faults after each single fault that leads to a new state.
const SECONDS_PER_FIRST: usize = 12;
/// Number of seeded orders for each scenario and lag.
const SEEDS: u64 = 40;
/// Maximum number of events that a watch keeps back.
const MAX_LAG: usize = 3;
/// Number of random schedules that are done, and recorded as done, together.
const ROUND: usize = 64;

// Names of the sets of runs and of the counts, which are also their names in the report.
const QUIET: &str = "scenarios without a fault, each with a quiet hour";
const SINGLES: &str = "single faults";
const LAGS: &str = "seeded orders of answers and events, with a lag of 0 to 3";
const DEPOSED: &str = "leaders deposed in the middle of a call";
const OVERSLEPT: &str = "leaders deposed in the middle of a write that arrives after further steps of users";
const FIRSTS: &str = "single faults that were followed by random second ones";
const PAIRS: &str = "random pairs of faults";
const KNOWN: &str = "single faults without random second ones, as they lead to the state of another one";
const RANDOM: &str = "random schedules of three faults, order and lag";

/// Extent of an exploration.
#[derive(Clone, Debug)]
pub struct Extent {
    /// Seed of all random choices.
    pub seed: u64,
    /// Approximate time to spend.
    pub limit: Duration,
    /// Percentage of the time that the single faults may take. The other sets of runs share the remaining time.
    pub single_faults: u32,
    /// Name of the only scenario to explore; without a name, all scenarios are explored.
    pub scenario: Option<String>,
    /// Digest of the code under test; an exploration of the same code continues an earlier one. Empty if the digest is unknown,
    /// so that nothing is continued.
    pub code: String,
}

/// An exploration in progress.
struct Explorer<'a> {
    stage: &'a Stage,
    scenarios: Vec<Scenario>,
    seed: u64,
    start: Instant,
    limit: Duration,
    /// Percentage of the time after which the single faults end.
    share: u32,
    kept: Mutex<Kept>,
    figures: Vec<(String, String)>,
}

/// Explores all scenarios or one. Runs that an earlier exploration of the same code has done are not repeated.
#[must_use]
pub fn explore(stage: &Stage, extent: &Extent, earlier: Option<&Report>) -> Report {
    let only = extent.scenario.as_deref();
    let scenarios = all()
        .into_iter()
        .filter(|known| only.is_none_or(|only| known.name == only));
    // A run is identified by its index among the runs of a set, which depends on the scenarios and the seed.
    let code = match &extent.code {
        code if code.is_empty() => String::new(),
        code => format!("{code} {} {only:?}", extent.seed),
    };
    let mut explorer = Explorer {
        stage,
        scenarios: scenarios.collect(),
        seed: extent.seed,
        start: Instant::now(),
        limit: extent.limit,
        share: extent.single_faults.min(100),
        kept: Mutex::new(Kept::continued(earlier, &code)),
        figures: Vec::new(),
    };
    explorer.all();
    let Explorer {
        kept, mut figures, ..
    } = explorer;
    let kept = kept.into_inner();
    figures.extend(kept.tally.figures());
    Report {
        title: "Faults, lag and deposed leaders in simulation".to_owned(),
        about: "The production controllers run on the simulated API server, with virtual time and a seeded scheduler. Every call of \
                theirs waits for the scheduler, which answers it, loses it, delays it, refuses it, or ends the process."
            .to_owned(),
        figures,
        violations: kept.tally.violations(),
        not_covered: [
            "Calls to the API server are the smallest steps: what a process does between two calls happens at once.",
            "Pods, images and catalogd are stand-ins; their own parts of the proof cover them.",
            "At most two processes run at once, and the time of all processes is the same.",
            "Every pair of faults is tried in the scenarios that are named above; of the pairs in the others, random ones are tried.",
            "A state is the cluster, the steps of users, and the processes with their watches and calls, without times and without what the \
             processes remember. Of faults in equal states, one is tried, and a pair ends in a state from which another run has shown the rest.",
        ]
        .map(ToOwned::to_owned)
        .into(),
        state: serde_json::to_value(kept).unwrap_or_default(),
        ..Report::default()
    }
}

impl Explorer<'_> {
    /// Explores all sets of runs, each up to its share of the time.
    fn all(&mut self) {
        let bases = self.bases();
        let (singles, equal) = singles(&bases, &with_lag(0));
        self.runs(SINGLES, &singles, self.share);
        let name = "crashes that leave the same cluster behind as another one, left out";
        self.figures.push((name.to_owned(), equal.to_string()));
        // The other sets share the remaining time.
        let until = |percent: u32| self.share + (100 - self.share) * percent / 100;
        let [lags, slow, leaders, late, every, pairs] = [10, 45, 60, 65, 80, 92].map(until);
        let lagging = self.lagging();
        self.runs(LAGS, &lagging, lags);
        self.lagging_singles(slow);
        let deposed = deposed(&bases);
        self.runs(DEPOSED, &deposed, leaders);
        let overslept = overslept(&bases);
        self.runs(OVERSLEPT, &overslept, late);
        self.every_pair(&bases, &singles, every);
        self.pairs(singles, pairs);
        self.random(&bases);
    }

    /// Runs every scenario without a fault. Every exploration repeats these runs, because the schedules of all others depend on
    /// their calls.
    fn bases(&mut self) -> Vec<Option<Outcome>> {
        let outcomes = self.fault_free(&Schedule::default(), Ending::QuietHour);
        let mut kept = self.kept.lock();
        for (at, outcome) in (0..).zip(&outcomes) {
            if let Some(outcome) = outcome.as_ref().filter(|_| !kept.is_done(QUIET, at)) {
                kept.add(outcome);
                kept.finish(QUIET, at);
            }
        }
        drop(kept);
        self.tell(QUIET, outcomes.len());
        outcomes
    }

    /// Returns the outcomes of all scenarios with one schedule.
    fn fault_free(&self, schedule: &Schedule, ending: Ending) -> Vec<Option<Outcome>> {
        let count = self.scenarios.len();
        let outcomes: Vec<_> = (0..count).map(|_| Mutex::new(None)).collect();
        self.each(count, 100, |at| {
            *outcomes[at].lock() = self.outcome(&job(at, schedule.clone(), ending));
        });
        outcomes.into_iter().map(Mutex::into_inner).collect()
    }

    /// Does the runs with a single fault for each lag, until `share` percent of the time is over. Their runs without a fault, which
    /// are repeated each time, are not limited once the time allows to begin.
    fn lagging_singles(&mut self, share: u32) {
        for lag in 1..=MAX_LAG {
            let set = format!("single faults while watches keep back up to {lag} events");
            if self.start.elapsed() >= self.until(share) {
                self.figures.push((set, "0".to_owned()));
                continue;
            }
            let schedule = with_lag(lag);
            let bases = self.fault_free(&schedule, Ending::Short);
            let (singles, _) = singles(&bases, &schedule);
            self.runs(&set, &singles, share);
        }
    }

    /// Does the runs of a set that are not done yet, until `share` percent of the time is over.
    fn runs(&mut self, set: &str, jobs: &[Job], share: u32) {
        self.rest(set, jobs.len(), share, |at| {
            let outcome = self.outcome(&jobs[at])?;
            self.kept.lock().add(&outcome);
            Some(())
        });
        self.tell(set, jobs.len());
    }

    /// Follows single faults by random second faults, in a seeded order. If several single faults lead to the same state, only one of
    /// them is followed.
    fn pairs(&mut self, mut singles: Vec<Job>, share: u32) {
        shuffle(&mut singles, &mut Rng::new(self.seed));
        let seen = Mutex::new(HashSet::new());
        self.rest(FIRSTS, singles.len(), share, |at| {
            let single = &singles[at];
            let outcome = self.outcome(single)?;
            if !seen.lock().insert((single.scenario, outcome.after_fault)) {
                self.kept.lock().count(KNOWN, 1);
                return Some(());
            }
            let mut rng = Rng::new(self.seed.wrapping_add(at as u64));
            for pair in seconds(single, &outcome, &mut rng, SECONDS_PER_FIRST) {
                if let Some(outcome) = self.outcome(&pair) {
                    let mut kept = self.kept.lock();
                    kept.add(&outcome);
                    kept.count(PAIRS, 1);
                }
            }
            Some(())
        });
        self.tell(FIRSTS, singles.len());
        self.tell_count(PAIRS);
        self.tell_count(KNOWN);
    }

    /// Runs random schedules of three faults until the time is over.
    fn random(&mut self, bases: &[Option<Outcome>]) {
        while self.start.elapsed() < self.limit && !bases.is_empty() {
            let round = self.kept.lock().done(RANDOM);
            let jobs = random(bases, self.seed.wrapping_add(round), ROUND);
            self.each(jobs.len(), 100, |at| {
                if let Some(outcome) = self.outcome(&jobs[at]) {
                    let mut kept = self.kept.lock();
                    kept.add(&outcome);
                    kept.count(RANDOM, 1);
                }
            });
            self.kept.lock().finish(RANDOM, round);
        }
        self.tell_count(RANDOM);
    }

    /// Does a run.
    fn outcome(&self, job: &Job) -> Option<Outcome> {
        self.outcome_with(job, Options::default())
    }

    /// Does a run with options.
    fn outcome_with(&self, job: &Job, options: Options) -> Option<Outcome> {
        let scenario = self.scenarios.get(job.scenario)?;
        self.stage
            .run_with(scenario, &job.schedule, job.ending, options)
            .ok()
    }

    /// Does the items of a set that are not done yet, until `share` percent of the time is over. An item for which `work` returns
    /// `None` could not run, so it stays undone.
    fn rest(&self, set: &str, count: usize, share: u32, work: impl Fn(usize) -> Option<()> + Sync) {
        let kept = self.kept.lock();
        let left: Vec<usize> = (0..count).filter(|at| !kept.is_done(set, *at as u64)).collect();
        drop(kept);
        self.each(left.len(), share, |at| {
            if work(left[at]).is_some() {
                self.kept.lock().finish(set, left[at] as u64);
            }
        });
    }

    /// Does `count` items on all processors until `share` percent of the time is over. `work` gets the index of the item.
    fn each(&self, count: usize, share: u32, work: impl Fn(usize) + Sync) {
        let until = self.until(share);
        let next = AtomicUsize::new(0);
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let worker = || {
            while self.start.elapsed() < until {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count {
                    return;
                }
                work(at);
            }
        };
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(worker);
            }
        });
    }

    /// Returns the time from the start after which `share` percent of the time is over.
    fn until(&self, share: u32) -> Duration {
        self.limit * share / 100
    }

    /// Adds a figure that says how many runs of a set are done.
    fn tell(&mut self, set: &str, count: usize) {
        let text = share_of(self.kept.lock().done(set), count);
        tracing::info!(set, text, seconds = self.start.elapsed().as_secs(), "explored");
        self.figures.push((set.to_owned(), text));
    }

    /// Adds a figure for a count.
    fn tell_count(&mut self, name: &str) {
        let count = self.kept.lock().counts.get(name).copied().unwrap_or_default();
        tracing::info!(name, count, "explored");
        self.figures.push((name.to_owned(), count.to_string()));
    }

    /// Returns runs of every scenario in seeded orders, with lags of 0 to 3 events.
    fn lagging(&self) -> Vec<Job> {
        let mut out = Vec::new();
        for seed in 1..=SEEDS {
            for lag in 0..=MAX_LAG {
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
}

/// Returns a text that says how many of `count` runs are done.
fn share_of(done: u64, count: usize) -> String {
    if done == count as u64 {
        format!("{done} (all)")
    } else {
        format!("{done} of {count}")
    }
}
