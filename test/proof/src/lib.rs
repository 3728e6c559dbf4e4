//! What a proof of the controllers holds them to, and how it reports.
//!
//! A run, simulated or real, feeds every change that its API server accepted to [`Invariants`], in order, and gets the violations of
//! each. [`Report`] is what every part of a proof writes; `cargo xtask prove` joins the reports into docs/proof.md.

mod change;
mod invariants;
mod object;
mod progress;
mod report;

pub use change::{Actor, Change, ObjectKey, Preconditions, Violation};
pub use invariants::{INVARIANTS, Invariants, Settings};
pub use progress::Progress;
pub use report::{Ran, Report};
