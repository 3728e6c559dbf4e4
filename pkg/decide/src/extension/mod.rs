//! Decisions of a pass: which bundle, which revision, which events. Pure: no API server, registry, catalog or clock.

pub mod admission;
pub mod approver;
mod bundle_image;
pub mod catalogs;
pub mod crd_findings;
pub mod dependents;
pub mod desired_state;
pub mod events;
pub mod history;
pub mod hold;
pub mod identity;
pub mod joint;
pub mod plan;
pub mod resolve;
pub mod rollback;
mod successors;
pub mod support;
#[cfg(test)]
mod tests;

pub use catalogs::{CatalogAnswers, CatalogLookups};
pub use desired_state::{DesiredState, desired_state, superfluous};
pub use history::{BundleRef, History, Revision};
pub use identity::{CertificateProvider, PermittedProviders, RenderInputs};
pub use resolve::{Refusal, Resolved, kept, resolve, unresolved};
