//! The catalog content service: ClusterCatalog controller, storage, HTTP server.
//!
//! A ClusterCatalog names an image; its catalog is pulled, canonicalised, stored as a generation
//! and served over HTTPS. Nothing is wiped at start: what is on disk is served again at once.

mod args;
pub mod check;
pub mod controller;
pub mod gc;
pub mod metrics;
mod run;
pub mod server;
pub mod storage;

pub use args::Args;
pub use run::{run, run_until};
