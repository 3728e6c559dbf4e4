//! Catalogs of any size, load, and the figures of docs/benchmarks.md, measured on the real programs.

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
