//! Faults for real: a proxy that disturbs any controller, kills, and broken surroundings.
//!
//! A [`World`] has a real control plane, a registry, catalogd and the controller under test. A [`Scenario`] is one extension with a
//! catalog of three versions; each [`Stage`] is a change by the user and the [`Expectation`] that holds afterwards.
//! [`convergence::reach`] waits for the expectation and then for quiet. The controllers reach the API server through a [`Proxy`], which
//! attributes every write to its sender and injects faults. [`Observer`] watches the API server directly and turns what it sees into
//! [`olm_proof::Change`]s.

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
