//! The extension manager: ClusterExtension and ClusterObjectSet controllers.
//!
//! One folder per kind. Every reconcile is gather (IO) → decide (pure) → act (IO) → report (pure), so that what is decided
//! can be tested without a cluster and the status is written once, at the end.

mod shared;

pub use shared::Shared;
