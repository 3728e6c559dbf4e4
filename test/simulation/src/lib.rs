//! The production controllers on the simulated API server: faults, lag, crashes, explored by seed.
//!
//! Everything runs on one thread with virtual time. Every call of a controller waits until all tasks wait; then the scheduler
//! answers one call, delivers one event of a watch, or lets the control plane work. The [`Schedule`] decides which, so that a run
//! repeats exactly.

mod account;
mod check;
mod clock;
mod cluster;
mod content;
mod explore;
mod fault;
mod hunt;
mod model;
mod net;
mod pairs;
mod planted;
mod rng;
mod run;
mod scenario;
mod seams;
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
