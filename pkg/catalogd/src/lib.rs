//! Catalog content service: ClusterCatalog controller, storage, HTTP server.
//!
//! A ClusterCatalog names an image. catalogd pulls the image, canonicalises its catalog, stores it as a generation and
//! serves it over HTTPS. A restart serves the content on disk again at once.

mod args;
pub mod check;
pub mod controller;
mod disk;
pub mod gc;
pub mod metrics;
mod run;
pub mod server;
pub mod storage;
mod sync;

pub use args::Args;
pub use run::{run, run_until};
