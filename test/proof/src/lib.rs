//! Invariants of the controllers, and the reports of the proof.
//!
//! The proof has several parts, which run the controllers in simulation (`test/simulation`) or on a real API server
//! (`hack/faults`). A run feeds every [`Change`] that its API server accepted to [`Invariants`], in order, and gets the
//! violations. Every part writes a [`Report`], and `cargo xtask prove` joins the reports into docs/proof.md.

mod change;
mod invariants;
mod object;
mod progress;
mod report;

pub use change::{Actor, Change, ObjectKey, Preconditions, Violation};
pub use invariants::{INVARIANTS, Invariants, Settings};
pub use progress::Progress;
pub use report::{Ran, Report};
