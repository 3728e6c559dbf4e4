//! Every pair of faults of a few scenarios. Faults in known states are left out: see [`Known`].

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::jobs::{Job, all_firsts, all_seconds};
use super::{Explorer, share_of};
use crate::fault::Fault;
use crate::run::{Options, Outcome, States};

/// Scenarios in which every pair of faults is tried, those with few pairs first.
const SCENARIOS: [&str; 7] = [
    "install",
    "drift",
    "delete",
    "upgrade",
    "catalog-gone",
    "rollback",
    "overtaken",
];

/// Knowledge from the runs of one scenario, which leaves out faults in states that are known.
struct Known {
    /// States right after the single faults that are followed by second ones. Another single fault that leads to such a state is not
    /// followed.
    after: HashSet<Option<u64>>,
    /// States before calls, with the faults that were tried there. Another pair whose second fault happens in such a state is left out.
    tried: HashSet<(u64, Fault)>,
    /// States after which nothing broke. A pair ends in such a state.
    good: Arc<States>,
}

impl Known {
    /// Returns the knowledge from the run without a fault.
    fn of(base: &Outcome) -> Self {
        let good = States::default();
        good.add(base, 0);
        Self {
            after: HashSet::new(),
            tried: all_firsts(base).collect(),
            good: Arc::new(good),
        }
    }

    /// Adds the run with a single fault. Returns the second faults to try, or `None` if the single fault leads to a known state.
    fn add(&mut self, single: &Job, outcome: &Outcome) -> Option<Vec<Job>> {
        if !self.after.insert(outcome.after_fault) {
            return None;
        }
        add_good(&self.good, single, outcome);
        let seconds = all_seconds(single, outcome).into_iter();
        let new = seconds.filter(|(place, _)| self.tried.insert(*place));
        Some(new.map(|(_, pair)| pair).collect())
    }
}

/// Adds the states after the last fault of a run that broke nothing.
fn add_good(good: &States, job: &Job, outcome: &Outcome) {
    if outcome.violations.is_empty()
        && let Some(last) = job.schedule.faults.keys().next_back()
    {
        good.add(outcome, last + 1);
    }
}

impl Explorer<'_> {
    /// Follows the single faults of each of [`SCENARIOS`] by every possible second fault, until `share` percent of the time is over.
    ///
    /// Up to the second step of users, the longer scenarios are installations like the shortest one, so their pairs begin there.
    pub(super) fn every_pair(&mut self, bases: &[Option<Outcome>], singles: &[Job], share: u32) {
        for name in SCENARIOS {
            let at = self.scenarios.iter().position(|scenario| scenario.name == name);
            let Some((at, base)) = at.and_then(|at| Some((at, bases.get(at)?.as_ref()?))) else {
                continue;
            };
            let first_step = if self.scenarios[at].steps.len() > 1 { 2 } else { 0 };
            let begins_there = |single: &&Job| {
                let call = single.schedule.faults.keys().next();
                single.scenario == at && call.is_some_and(|call| base.calls[*call].step >= first_step)
            };
            let firsts: Vec<Job> = singles.iter().filter(begins_there).cloned().collect();
            self.pairs_of(name, base, &firsts, share);
        }
    }

    /// Follows single faults of one scenario by every second fault in a new state. `base` is the run without a fault.
    fn pairs_of(&mut self, name: &str, base: &Outcome, firsts: &[Job], share: u32) {
        let set = format!("every pair of faults in {name}");
        let names = ["followed", "pairs", "ended early"].map(|what| format!("{set}: {what}"));
        let [followed, pairs, ended] = &names;
        let known = Mutex::new(Known::of(base));
        self.recall(followed, firsts, &known);
        self.rest(&set, firsts.len(), share, |at| {
            let outcome = self.outcome(&firsts[at])?;
            let mut all = known.lock();
            let good = Arc::clone(&all.good);
            let Some(jobs) = all.add(&firsts[at], &outcome) else {
                return Some(());
            };
            drop(all);
            for job in jobs {
                let options = Options {
                    known: Some(Arc::clone(&good)),
                    ..Options::default()
                };
                let outcome = self.outcome_with(&job, options)?;
                add_good(&good, &job, &outcome);
                let mut kept = self.kept.lock();
                kept.add(&outcome);
                kept.count(pairs, 1);
                kept.count(ended, u64::from(outcome.is_known));
            }
            self.kept.lock().finish(followed, at as u64);
            Some(())
        });
        let kept = self.kept.lock();
        let count = |name: &String| kept.counts.get(name).copied().unwrap_or_default();
        let text = format!(
            "after {} single faults, of which {} lead to states of their own: {} pairs, of which {} end in a known state",
            share_of(kept.done(&set), firsts.len()),
            kept.done(followed),
            count(pairs),
            count(ended)
        );
        drop(kept);
        tracing::info!(set, text, seconds = self.start.elapsed().as_secs(), "explored");
        self.figures.push((set, text));
    }

    /// Repeats the single faults that earlier explorations have followed by second ones, so that their states are known again.
    fn recall(&self, followed: &str, firsts: &[Job], known: &Mutex<Known>) {
        let kept = self.kept.lock();
        let done: Vec<&Job> = (0..firsts.len())
            .filter(|at| kept.is_done(followed, *at as u64))
            .map(|at| &firsts[at])
            .collect();
        drop(kept);
        self.each(done.len(), 100, |at| {
            if let Some(outcome) = self.outcome(done[at]) {
                known.lock().add(done[at], &outcome);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::jobs::job;
    use crate::fault::{Kind, Schedule};
    use crate::run::Call;
    use crate::scenario::all;
    use crate::simulate::{Ending, Stage};

    fn single(at: usize, fault: Fault) -> Job {
        let schedule = Schedule {
            faults: [(at, fault)].into(),
            ..Schedule::default()
        };
        job(0, schedule, Ending::Short)
    }

    #[test]
    fn each_fault_is_tried_once_in_each_state() {
        let outcome = |states: &[u64], after: u64| Outcome {
            calls: (0..)
                .zip(states)
                .map(|(moment, state)| Call {
                    kind: Kind::Write,
                    moment,
                    step: 1,
                    state: *state,
                })
                .collect(),
            active: 0..states.len(),
            after_fault: Some(after),
            ..Outcome::default()
        };
        let mut known = Known::of(&outcome(&[1, 2, 3], 0));
        let mut seconds = |states: &[u64], after: u64| {
            let pairs = known.add(&single(0, Fault::LostCut), &outcome(states, after))?;
            let calls = pairs
                .iter()
                .filter_map(|pair| pair.schedule.faults.keys().nth(1).copied());
            Some(calls.collect::<Vec<usize>>())
        };
        // Two crashes, two timeouts, a cut and one refusal in the new state; the run without a fault has shown the others.
        assert_eq!(seconds(&[1, 10, 3], 7), Some(vec![1; 6]));
        assert_eq!(
            seconds(&[1, 11, 3], 7),
            None,
            "the same state after the single fault"
        );
        assert_eq!(seconds(&[1, 10, 12], 8), Some(vec![2; 6]));
    }

    #[test]
    fn a_run_ends_in_a_state_that_another_one_has_passed_without_a_fault() {
        let stage = Stage::new().unwrap();
        let scenario = all()
            .into_iter()
            .find(|scenario| scenario.name == "install")
            .unwrap();
        let base = stage
            .run(&scenario, &Schedule::default(), Ending::Short, false)
            .unwrap();
        let good = Arc::new(States::default());
        good.add(&base, 0);
        let run = |schedule: &Schedule| {
            let options = Options {
                known: Some(Arc::clone(&good)),
                ..Options::default()
            };
            stage
                .run_with(&scenario, schedule, Ending::Short, options)
                .unwrap()
        };
        let (mut known, mut others) = (0, 0);
        for at in (0..base.active.end).step_by(5) {
            let outcome = run(&single(at, Fault::LostCut).schedule);
            assert!(outcome.met == 1 && outcome.calls.len() > at && outcome.violations.is_empty());
            *if outcome.is_known { &mut known } else { &mut others } += 1;
        }
        assert!(known > others && others > 0, "{known} and {others}");
        let never = run(&single(100_000, Fault::LostCut).schedule);
        assert!(!never.is_known, "its fault does not happen");
    }
}
