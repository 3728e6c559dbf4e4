//! Options of a run, and its outcome: calls, states and violations.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use olm_proof::Violation;
use parking_lot::Mutex;

use crate::fault::Kind;
use crate::planted::Bug;

/// Hashes of states from which runs without further faults have reached their goal.
#[derive(Debug, Default)]
pub(crate) struct States(Mutex<HashSet<u64>>);

impl States {
    /// Adds the states that a run passed from call number `from` on.
    pub(crate) fn add(&self, outcome: &Outcome, from: usize) {
        let states = outcome.calls.iter().skip(from).map(|call| call.state);
        self.0.lock().extend(states);
    }

    /// Returns true if a run has passed the state.
    pub(super) fn has(&self, state: u64) -> bool {
        self.0.lock().contains(&state)
    }
}

/// Options of a run: a trace, a planted bug, and an early end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// True if the run records a trace.
    pub(crate) traced: bool,
    /// Planted bug between the controllers and the network.
    pub(crate) bug: Option<Bug>,
    /// States in which the run ends once all its faults have happened.
    pub(crate) known: Option<Arc<States>>,
}

/// An answered call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Kind of the call, which decides what faults it can have.
    pub kind: Kind,
    /// Number of the moment. A moment is a sequence of calls between which neither the cluster changed nor a user acted.
    pub moment: usize,
    /// Number of steps that users had carried out before.
    pub step: usize,
    /// Hash of the state before the call.
    pub state: u64,
}

/// Violations and figures of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Answered calls, by number.
    pub calls: Vec<Call>,
    /// Number of faults that happened, a deposition included.
    pub met: usize,
    /// Broken invariants and failed checks.
    pub violations: Vec<Violation>,
    /// Hashes of the states that the run passed.
    pub states: HashSet<u64>,
    /// Hash of the state after the last fault, if all faults of the schedule happened.
    pub after_fault: Option<u64>,
    /// Number of actions of the scheduler.
    pub depth: usize,
    /// Lines of the trace; empty if no trace was requested.
    pub trace: Vec<String>,
    /// Numbers of the calls in which faults are worth trying: from the first step after the preparation until the cluster first
    /// came to rest after the last step.
    pub active: Range<usize>,
    /// Hash of the cluster at the end, without uids, resource versions and times.
    pub end: u64,
    /// True if the run ended early, in a state from which another run had shown the rest.
    pub is_known: bool,
}
