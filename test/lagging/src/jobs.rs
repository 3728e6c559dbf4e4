//! Schedules: every fault of every call of a run without a fault.

use olm_simulation::{Fault, Outcome, Schedule};

/// Returns the schedule of the run without a fault in which watches keep back up to `lag` events. The lag is also the seed: each lag
/// has an order of its own.
pub(crate) fn base(lag: usize) -> Schedule {
    Schedule {
        seed: lag as u64,
        lag,
        ..Schedule::default()
    }
}

/// Returns a schedule for each call of the run `outcome` of `base` and each fault that applies to the call, from the first step of the
/// scenario after its preparation until the cluster rests.
///
/// A process that crashes before a call leaves nothing behind but the cluster, which does not change within a moment. So one such crash
/// in a moment is enough.
pub(crate) fn singles(base: &Schedule, outcome: &Outcome) -> Vec<Schedule> {
    let mut schedules = Vec::new();
    let mut moment = None;
    for at in outcome.active.clone() {
        let Some(call) = outcome.calls.get(at) else { break };
        let is_known = moment.replace(call.moment) == Some(call.moment);
        let faults = Fault::ALL.into_iter().filter(|fault| fault.applies(call.kind));
        for fault in faults.filter(|fault| !is_known || *fault != Fault::CrashBefore) {
            let mut schedule = base.clone();
            schedule.faults.insert(at, fault);
            schedules.push(schedule);
        }
    }
    schedules
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use olm_simulation::{Ending, Stage, scenarios};

    use super::*;

    #[test]
    fn every_active_call_has_every_fault_that_applies() {
        let (stage, scenario) = (Stage::new().unwrap(), scenarios().remove(0));
        let base = base(2);
        let outcome = stage.run(&scenario, &base, Ending::Short, false).unwrap();
        let schedules = singles(&base, &outcome);
        let mut tried = BTreeSet::new();
        for schedule in &schedules {
            assert_eq!((schedule.seed, schedule.lag, schedule.faults.len()), (2, 2, 1));
            tried.extend(schedule.faults.clone());
        }
        assert_eq!(tried.len(), schedules.len(), "no schedule repeats");
        let mut moments = BTreeSet::new();
        for at in outcome.active.clone() {
            let call = outcome.calls[at];
            for fault in Fault::ALL.into_iter().filter(|fault| fault.applies(call.kind)) {
                let left_out = fault == Fault::CrashBefore && !moments.insert(call.moment);
                assert_ne!(tried.contains(&(at, fault)), left_out, "{at} {fault}");
            }
        }
        assert!(moments.len() > 10, "{moments:?}");
    }
}
