//! Schedules of an exploration: faults, orders and deposed leaders, derived from the calls of the runs without a fault (the
//! bases).

use std::ops::Range;

use crate::fault::{Deposed, Fault, Kind, Schedule};
use crate::rng::Rng;
use crate::run::{Call, Outcome};
use crate::simulate::Ending;

/// Maximum number of steps of users that a deposed leader misses.
const MISSED: usize = 2;
/// Number of calls in which a process lists and watches all kinds after its start, and finishes its first passes.
const STARTING: usize = 20;

/// A run to do.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Index of the scenario.
    pub(crate) scenario: usize,
    pub(crate) schedule: Schedule,
    pub(crate) ending: Ending,
}

pub(super) fn job(scenario: usize, schedule: Schedule, ending: Ending) -> Job {
    Job {
        scenario,
        schedule,
        ending,
    }
}

/// Returns the schedule of a fault-free run in which watches keep back up to `lag` events. The lag is also the seed: each lag has an
/// order of answers and events of its own. Without a lag, it is the schedule of the bases.
pub(super) fn with_lag(lag: usize) -> Schedule {
    Schedule {
        seed: lag as u64,
        lag,
        ..Schedule::default()
    }
}

/// Returns a run for every call of the fault-free runs of `schedule` and every fault that applies to the call, and the number of
/// crashes left out (see [`faults`]). The index of a run without a fault is that of its scenario.
pub(crate) fn singles(bases: &[Option<Outcome>], schedule: &Schedule) -> (Vec<Job>, usize) {
    let (mut out, mut equal) = (Vec::new(), 0);
    for (scenario, base) in bases.iter().enumerate() {
        let (faults, crashes) = base
            .as_ref()
            .map(|base| faults(base, base.active.start))
            .unwrap_or_default();
        equal += crashes;
        for fault in faults {
            let schedule = Schedule {
                faults: [fault].into(),
                ..schedule.clone()
            };
            out.push(job(scenario, schedule, Ending::Short));
        }
    }
    // Shuffled, so that a short exploration covers all scenarios.
    shuffle(&mut out, &mut Rng::new(1));
    (out, equal)
}

/// Returns the calls of a run from number `from` until the cluster rests, with their numbers.
fn active(run: &Outcome, from: usize) -> impl Iterator<Item = (usize, &Call)> {
    run.calls[..run.active.end].iter().enumerate().skip(from)
}

/// Returns every call of a run from number `from` until the cluster rests with every fault that applies to it, and the number of
/// crashes left out. A process that crashes before a call leaves nothing behind but the cluster, which does not change within a moment. So
/// one such crash in a moment is enough.
fn faults(run: &Outcome, from: usize) -> (Vec<(usize, Fault)>, usize) {
    let (mut out, mut equal) = (Vec::new(), 0);
    let mut moment = None;
    for (at, call) in active(run, from) {
        let known = moment.replace(call.moment) == Some(call.moment);
        for fault in Fault::ALL.into_iter().filter(|fault| fault.applies(call.kind)) {
            if known && fault == Fault::CrashBefore {
                equal += 1;
            } else {
                out.push((at, fault));
            }
        }
    }
    (out, equal)
}

/// Returns runs in which a leader is deposed at every call. It goes on early, later, or when its successor rests, and ends after
/// one call or thirty. A leader that ends with a call other than a write equals one that crashes, so it is left out.
pub(crate) fn deposed(bases: &[Option<Outcome>]) -> Vec<Job> {
    let mut out = Vec::new();
    for (scenario, base) in bases.iter().enumerate() {
        for (at, call) in base.iter().flat_map(|base| active(base, base.active.start)) {
            let lives: &[usize] = if call.kind == Kind::Write { &[1, 30] } else { &[30] };
            for after in [10, 40, usize::MAX] {
                for &life in lives {
                    out.push(with_deposed(scenario, at, after, life, 0));
                }
            }
        }
    }
    shuffle(&mut out, &mut Rng::new(2));
    out
}

/// Returns runs in which a leader is deposed at every write, and its write arrives after one or two further steps of users: early,
/// or when its successor rests. It ends after one call or thirty.
pub(crate) fn overslept(bases: &[Option<Outcome>]) -> Vec<Job> {
    let mut out = Vec::new();
    for (scenario, base) in bases.iter().enumerate() {
        let writes = base.iter().flat_map(|base| active(base, base.active.start));
        for (at, call) in writes.filter(|(_, call)| call.kind == Kind::Write) {
            for steps in 1..=steps_left(base.as_ref(), call).min(MISSED) {
                for after in [10, usize::MAX] {
                    for life in [1, 30] {
                        out.push(with_deposed(scenario, at, after, life, steps));
                    }
                }
            }
        }
    }
    shuffle(&mut out, &mut Rng::new(3));
    out
}

fn with_deposed(scenario: usize, at: usize, after: usize, life: usize, steps: usize) -> Job {
    let schedule = Schedule {
        deposed: Some(Deposed {
            at,
            after,
            life,
            steps,
        }),
        ..Schedule::default()
    };
    job(scenario, schedule, Ending::Short)
}

/// Returns the number of steps of users after a call.
fn steps_left(run: Option<&Outcome>, call: &Call) -> usize {
    let last = run.and_then(|run| run.calls.last()).map_or(0, |last| last.step);
    last.saturating_sub(call.step)
}

/// Returns every second fault that can follow a single one, with the state before it, and the run with both. Of the faults that
/// refuse a call, there is one, which the state chooses, because all of them lead to the same state.
pub(super) fn all_seconds(single: &Job, outcome: &Outcome) -> Vec<((u64, Fault), Job)> {
    let Some(first) = single.schedule.faults.keys().next() else {
        return Vec::new();
    };
    let (faults, _) = faults(outcome, first + 1);
    let mut out = Vec::new();
    for of_call in faults.chunk_by(|(a, _), (b, _)| a == b) {
        let (refusals, others): (Vec<_>, Vec<_>) = of_call.iter().partition(|(_, fault)| fault.refuses());
        let state = outcome.calls[of_call[0].0].state;
        let chosen = Rng::new(state).pick(&refusals).copied();
        for (at, fault) in others.into_iter().chain(chosen) {
            let mut schedule = single.schedule.clone();
            schedule.faults.insert(at, fault);
            out.push(((state, fault), job(single.scenario, schedule, Ending::Short)));
        }
    }
    out
}

/// Returns every fault of a run without a fault, with the state before it.
pub(super) fn all_firsts(base: &Outcome) -> impl Iterator<Item = (u64, Fault)> {
    let (faults, _) = faults(base, base.active.start);
    faults
        .into_iter()
        .map(|(at, fault)| (base.calls[at].state, fault))
}

/// Returns runs with random second faults after a single one, at calls that follow in the run with the single fault.
pub(super) fn seconds(single: &Job, outcome: &Outcome, rng: &mut Rng, count: usize) -> Vec<Job> {
    let Some(first) = single.schedule.faults.keys().next() else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for _ in 0..count {
        let later = outcome.calls.len().saturating_sub(first + 1);
        let at = first + 1 + rng.below(later);
        if let Some(fault) = any_fault(rng, outcome, at) {
            let mut schedule = single.schedule.clone();
            schedule.faults.insert(at, fault);
            out.push(job(single.scenario, schedule, Ending::Short));
        }
    }
    out
}

/// Returns runs with random schedules: three faults, an order, a lag and, in half of them, a deposed leader. Half of these
/// leaders have just started after a crash: they know the cluster from their lists, and their watches show them nothing yet.
pub(crate) fn random(bases: &[Option<Outcome>], seed: u64, count: usize) -> Vec<Job> {
    let mut rng = Rng::new(seed);
    let mut out = Vec::new();
    for _ in 0..count {
        let scenario = rng.below(bases.len());
        let Some(Some(base)) = bases.get(scenario) else {
            continue;
        };
        let mut schedule = Schedule {
            seed: rng.next(),
            lag: rng.below(4),
            ..Schedule::default()
        };
        for _ in 0..3 {
            let at = any_call(&mut rng, base);
            schedule
                .faults
                .extend(any_fault(&mut rng, base, at).map(|fault| (at, fault)));
        }
        if rng.chance(2) {
            let at = any_call(&mut rng, base);
            if rng.chance(2) {
                let crash = at.saturating_sub(1 + rng.below(STARTING));
                schedule
                    .faults
                    .insert(crash.max(base.active.start), Fault::CrashBefore);
            }
            let (after, life) = (rng.below(80), 1 + rng.below(40));
            let left = base.calls.get(at).map_or(0, |call| steps_left(Some(base), call));
            let steps = rng.below(1 + left.min(MISSED));
            schedule.deposed = Some(Deposed {
                at,
                after,
                life,
                steps,
            });
        }
        out.push(job(scenario, schedule, Ending::Short));
    }
    out
}

/// Returns the number of a random call in which a fault is worth trying.
fn any_call(rng: &mut Rng, outcome: &Outcome) -> usize {
    let Range { start, end } = outcome.active;
    start + rng.below(end - start)
}

/// Returns a random fault that applies to the call with number `at`.
fn any_fault(rng: &mut Rng, outcome: &Outcome, at: usize) -> Option<Fault> {
    let kind = outcome.calls.get(at)?.kind;
    let faults: Vec<Fault> = Fault::ALL
        .into_iter()
        .filter(|fault| fault.applies(kind))
        .collect();
    rng.pick(&faults).copied()
}

pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for at in (1..items.len()).rev() {
        items.swap(at, rng.below(at + 1));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Fault, singles, with_lag};
    use crate::scenario::all;
    use crate::simulate::{Ending, Stage};

    #[test]
    fn every_active_call_has_every_fault_that_applies() {
        let (stage, scenario, schedule) = (Stage::new().unwrap(), all().remove(0), with_lag(2));
        let base = stage.run(&scenario, &schedule, Ending::Short, false).unwrap();
        let (jobs, equal) = singles(&[Some(base.clone())], &schedule);
        let mut tried = BTreeSet::new();
        for job in &jobs {
            let schedule = &job.schedule;
            assert_eq!((schedule.seed, schedule.lag, schedule.faults.len()), (2, 2, 1));
            tried.extend(schedule.faults.clone());
        }
        assert_eq!(tried.len(), jobs.len(), "no run repeats");
        let (mut moments, mut left_out) = (BTreeSet::new(), 0);
        for at in base.active.clone() {
            let call = base.calls[at];
            for fault in Fault::ALL.into_iter().filter(|fault| fault.applies(call.kind)) {
                let is_equal = fault == Fault::CrashBefore && !moments.insert(call.moment);
                assert_ne!(tried.contains(&(at, fault)), is_equal, "{at} {fault}");
                left_out += usize::from(is_equal);
            }
        }
        assert_eq!(left_out, equal);
        assert!(moments.len() > 10, "{moments:?}");
    }
}
