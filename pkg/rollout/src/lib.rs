//! Decisions about rollouts: windows and soaking over a clock value, the need for an approval, and rollbacks, from
//! `spec.rollout`, and holds by which an operator keeps its own upgrade back.
//!
//! The functions are pure: the time is an argument, and the time zones come from a database in the binary, so every
//! machine decides alike.

mod approval;
pub mod hold;
mod rollback;
mod soak;
mod step;
mod window;

pub use approval::{Change, Verdict, decide, is_gated};
pub use rollback::{Direction, Newest, Situation, direction};
pub use soak::{SoakError, soak, soak_end};
pub use step::Step;
pub use window::{State, WindowError, Windows};
