//! Real faults for controllers on a real API server. The three parts are `proxy_runs` (faults of requests and connections),
//! `moments` (kills at random moments) and `surroundings` (trouble of the control plane, registries, disks, memory and clocks).
//!
//! - A [`World`] has a real control plane, a registry, catalogd and the controller under test.
//! - A [`Scenario`] is one extension with a catalog of three versions. Each [`Stage`] is a change by its user, which leads to an
//!   [`Expectation`].
//! - [`convergence::reach`] waits until the cluster meets the expectation, and then until nobody writes.
//! - The controllers reach the API server through a [`Proxy`], which attributes every write to its sender and injects faults.
//! - An [`Observer`] watches the API server directly and turns the events into [`olm_proof::Change`]s. A [`judge::Judge`] checks
//!   the invariants on them.
//! - A *case* is a schedule of faults, or an extension or a catalog with its kills. [`results`] adds up the results of cases.

pub mod convergence;
pub mod judge;
pub mod kinds;
pub mod moments;
pub mod observer;
mod pool;
pub mod program;
pub mod programs;
pub mod proxy;
pub mod proxy_runs;
pub mod results;
pub mod run;
pub mod scenario;
pub mod seeded;
pub mod surroundings;
pub mod world;

pub use convergence::Expectation;
pub use judge::Judge;
pub use observer::Observer;
pub use program::{Command, Program};
pub use programs::{Commands, Programs};
pub use proxy::Proxy;
pub use results::Results;
pub use run::Run;
pub use scenario::{Scenario, Stage};
pub use world::World;
