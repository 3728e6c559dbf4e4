//! Comparison of the writes of operator-controller with the plans of its rollouts.
//!
//! The writes come from the audit log of the API server. Unlike a proxy, it needs no certificates and passes no streams, and a
//! policy limits it to writes. It costs the API server one line of JSON for each write.
//!
//! The plan of a rollout is made by `pkg/plan`, as operator-controller and `kubectl olm plan` do. It starts from the state just
//! before: the objects of the newest revision at that time, and those of the new revision. The rules are:
//!
//! - A write to an object belongs to a revision, which the owner reference in its body names. The body is the planned object, so
//!   only fields that the plan names change. Objects that stay get the labels and the owner of their new revision.
//! - A second write of the same revision to the same object is a repair.
//! - An object is deleted only if a plan names it, or if its extension or revision is deleted.
//! - If a revision has rolled out, every created and changed object of its plan was written. If the older revisions are torn down, every
//!   deleted object of the plan was deleted. CRDs with custom resources may stay.
//! - An approved plan has a digest that the status has shown.
//!
//! Revisions, their Secrets, statuses, finalizers, events and leases are the bookkeeping of the controller and part of no plan.

mod ledger;
mod revision;
#[cfg(test)]
mod tests;
mod write;

pub use write::{Write, read};

use ledger::Ledger;

/// Result of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Number of revisions of extensions.
    pub rollouts: usize,
    /// Number of rollouts whose plan was approved.
    pub approved: usize,
    /// Number of writes to objects, repairs included.
    pub writes: usize,
    /// Number of writes that repaired an object.
    pub repairs: usize,
    /// Writes outside of a plan.
    pub outside: Vec<String>,
    /// Writes and deletions of plans that were not carried out.
    pub undone: Vec<String>,
}

impl Verdict {
    /// Returns a sentence for each violation.
    pub fn faults(&self) -> impl Iterator<Item = &String> {
        self.outside.iter().chain(&self.undone)
    }
}

/// Compares the writes of a run, which are in order, with the plans of the rollouts among them.
pub fn check(writes: &[Write]) -> Verdict {
    let mut ledger = Ledger::new(writes);
    for write in writes {
        ledger.add(write);
    }
    ledger.verdict()
}
