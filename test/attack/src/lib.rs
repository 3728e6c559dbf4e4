//! Attacks on both controllers, with the real binaries, a real control plane and hostile content.
//!
//! A [`Case`] is one attack: a hostile image or registry, and its expected outcome. Each module of [`attacks`] has the cases of
//! one class. Attacks by clients of catalogd are in `clients`. [`run()`] starts a [`World`] and performs the cases class by
//! class. After each class, it checks that the controllers still serve others. It returns a [`Report`] with the duration and the
//! peak memory of every case.
//!
//! `cargo test -p olm-attack` runs [`Scale::Small`], `cargo xtask attack` runs [`Scale::Full`] against release
//! binaries.

pub mod attacks;
mod case;
mod clients;
mod fairness;
mod report;
mod run;
mod world;

pub use case::{Case, Expect, Handler, Selection, Subject, serving};
pub use fairness::{Fairness, fairness};
pub use report::{Peaks, Report, Row};
pub use run::{MemoryLimits, run};
pub use world::{ExtraArgs, NAMESPACE, World};

/// Number and size of the attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Scale {
    /// A few small attacks of every class, in seconds.
    Small,
    /// Every attack, as large as the limits allow, one by one and then concurrently.
    Full,
}
