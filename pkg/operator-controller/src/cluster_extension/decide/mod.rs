//! Decisions of a pass: which bundle, which revision, which events. Pure: no API server, registry, catalog or clock.

pub(crate) mod admission;
pub(crate) mod approver;
mod bundle_image;
pub(crate) mod catalogs;
pub(crate) mod crd_findings;
pub(crate) mod dependents;
pub(crate) mod desired_state;
pub(crate) mod events;
pub(crate) mod history;
pub(crate) mod hold;
pub(crate) mod identity;
pub(crate) mod joint;
pub(crate) mod plan;
pub(crate) mod resolve;
pub(crate) mod rollback;
mod successors;
pub(crate) mod support;
#[cfg(test)]
mod tests;

pub(crate) use catalogs::{CatalogAnswers, CatalogLookups};
pub(crate) use desired_state::{DesiredState, desired_state, superfluous};
pub(crate) use history::{BundleRef, History, Revision};
pub(crate) use identity::{CertificateProvider, RenderInputs};
pub(crate) use resolve::{Refusal, Resolved, resolve, unresolved};
