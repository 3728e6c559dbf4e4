//! Runs the production controllers on the simulated API server of `test/world`, with faults, lag and crashes.
//!
//! A run has one thread and virtual time. A *call* is a request of a controller to the API server, a catalog or a registry. Every
//! call waits until all tasks wait. Then the scheduler answers one call, delivers one event of a watch, or lets the simulated
//! control plane work. The [`Schedule`] determines its choices and the faults, so that a run repeats exactly.
//!
//! - A [`Scenario`] is a sequence of steps of users on the *small world*: the fixture of this crate, with three packages, two
//!   catalogs and one namespace.
//! - A *process* is one instance of operator-controller. A crash ends it, and another one starts.
//! - The cluster is *at rest*, or *quiet*, if nothing was written to it for some time.
//! - `test/proof` has the invariants that every accepted change is checked against.

mod account;
mod check;
mod clock;
mod cluster;
mod content;
mod explore;
mod fault;
mod hash;
mod hunt;
mod model;
mod net;
mod pairs;
mod planted;
mod rng;
mod run;
mod scenario;
mod seams;
mod server;
mod simulate;
mod specs;
mod subject;
mod tally;
mod user;

pub use content::Content;
pub use explore::{Extent, explore};
pub use fault::{Deposed, Fault, Kind, Schedule};
pub use hunt::report as hunt;
pub use pairs::{pairs, real_pairs};
pub use planted::{BUGS, Bug, find_planted};
pub use run::{Outcome, watch_panics};
pub use scenario::{Scenario, When, all as scenarios};
pub use simulate::{Ending, Stage};

pub use user::Action;
