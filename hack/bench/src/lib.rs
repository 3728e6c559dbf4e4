//! Benchmarks of the real programs: generator of catalogs of any size, load on the content server, and the figures of
//! docs/benchmarks.md.
//!
//! `report` measures both controllers and compares the figures with another implementation or an earlier run.
//! `kill`, `memory` and `soak` are tests of catalogd that take too long for the test suites.

#![expect(clippy::print_stdout, reason = "figures are this crate's result")]

pub mod figures;
pub mod generate;
mod kernel;
pub mod kill;
mod load;
pub mod memory;
pub mod report;
pub mod soak;
mod world;
