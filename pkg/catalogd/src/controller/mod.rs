//! Controller of ClusterCatalogs: gather, decide (pure), act, report.
//!
//! The status is computed once, at the end, and written only if it changes. A slow or broken catalog does not delay the
//! others.

mod act;
mod catalog_state;
mod cluster_version;
mod context;
mod decide;
mod follow;
mod gather;
mod image_template;
mod images;
#[cfg(test)]
mod judged;
mod outcome;
mod poll_status;
mod reconcile;
mod report;
mod watch;

pub use catalog_state::CatalogState;
pub(crate) use context::CONCURRENCY;
pub use context::{Context, forget_deleted};
pub use decide::{
    Check, Decision, Failure, History, Inputs, Judgement, Loss, Poll, RequestedImage, StoredContent, decide,
};
pub use follow::follow;
pub use image_template::{ClusterVersions, TemplateError, expand};
pub use reconcile::run;
pub use watch::{CatalogWatch, DeletedCatalogs};
