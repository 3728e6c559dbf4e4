//! Controller of ClusterCatalogs: gather, decide (pure), act, report.
//!
//! The status is computed once, at the end, and written only if it changes. A slow or broken catalog does not delay the
//! others.

mod act;
mod context;
mod decide;
mod follow;
mod gather;
mod images;
mod reconcile;
mod report;
mod watch;

pub(crate) use context::CONCURRENCY;
pub use context::{Context, forget_deleted};
pub use decide::{Decision, Failure, History, Inputs, Poll, RequestedImage, StoredContent, decide};
pub use follow::follow;
pub use reconcile::run;
pub use watch::{CatalogState, CatalogWatch, DeletedCatalogs};
