//! The controller of ClusterCatalog: gather, decide (pure), act, report.
//!
//! The status is computed once, at the end, and written only when it says something new. One
//! catalog that is slow or broken holds up no other.

mod act;
mod claims;
mod context;
mod decide;
mod follow;
mod gather;
mod images;
mod reconcile;
mod report;

pub use claims::{Claim, Claims, Vanished};
pub(crate) use context::CONCURRENCY;
pub use context::{Context, forget_vanished};
pub use decide::{Decision, Failure, Found, Memory, Poll, Stored, Wanted, decide};
pub use follow::follow;
pub use reconcile::run;
