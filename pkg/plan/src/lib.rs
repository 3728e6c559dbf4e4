//! Plans: everything that a change of an extension's bundle would change, as a value with a digest.
//!
//! [`Change`] is the input: two sides with their objects, and the results of checks. [`Change::plan`] compares the sides. The crate
//! does no IO, so operator-controller and `kubectl olm` make the same plan of the same change.
//!
//! The digest identifies the change and not the state of a cluster: it covers the inputs and the rendered objects without the
//! certificates that operator-controller issues. See [`Change::digest`].

mod change;
mod crds;
mod diff;
mod irreversible;
mod joint;
mod live;
mod model;
mod objects;
mod rights;
mod spec;
mod workloads;

pub use change::{Change, Side};
pub use crds::{compare as compare_crds, dropped as dropped_crds};
pub use diff::{Budget, Fields, fields};
pub use joint::{JointPlan, Pin};
pub use live::DryRun;
pub use model::{
    BundleIdentity, CatalogIdentity, Counts, CrdVerdict, Dependent, FieldChange, Images, Irreversible,
    ObjectChange, ObjectRef, Outcome, Plan, Restart, Right, Rights, RightsChange, StoredObjects,
};
pub use objects::{Desired, desired};
pub use spec::{names_digest, spec_digest};

#[cfg(test)]
mod tests;
