//! Comparison of the writes of operator-controller with the plans of its rollouts.
//!
//! The recorder between controller and API server is the API server's own audit log: it needs no proxy with certificates of its own, no
//! stream passes through a test, and a policy limits it to writes. It costs the API server one line of JSON for each write.
//!
//! The plan of a rollout is made by `pkg/plan`, as operator-controller and `kubectl olm plan` make it, from the state just before: the
//! objects of the newest revision at that time, and those of the new one. The rules:
//!
//! - A write to an object belongs to a revision, by the owner reference in its body, and the body is the planned object. The fields that
//!   change are therefore those that the plan names. Objects that stay get the marks of their new revision.
//! - A second write of the same revision to the same object is a repair.
//! - An object is deleted only if a plan names it, or if its extension or revision is deleted.
//! - If a revision has rolled out, every created and changed object of its plan was written. If the older revisions are torn down, every
//!   deleted object of the plan was deleted. CRDs with custom resources may stay.
//! - A plan that was approved has the digest that the status showed.
//!
//! Revisions, their Secrets, statuses, finalizers, events and leases are the controller's own bookkeeping and in no plan.

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
    /// Promises of plans that were not kept.
    pub undone: Vec<String>,
}

impl Verdict {
    /// Returns the number of violations.
    pub fn faults(&self) -> usize {
        self.outside.len() + self.undone.len()
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "plans: {} rollouts ({} approved), {} writes, {} repairs, {} outside of a plan, {} not done",
            self.rollouts,
            self.approved,
            self.writes,
            self.repairs,
            self.outside.len(),
            self.undone.len()
        )
    }
}

/// Compares the writes, in their order, with the plans of the rollouts among them.
pub fn check(writes: &[Write]) -> Verdict {
    let mut ledger = Ledger::new(writes);
    for write in writes {
        ledger.add(write);
    }
    ledger.verdict()
}
