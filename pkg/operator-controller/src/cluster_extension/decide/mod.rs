//! Decisions of a pass: which bundle, which revision, which events. Pure: no API server, registry, catalog or clock.

mod bundle_image;
pub(crate) mod catalogs;
pub(crate) mod crd_findings;
pub(crate) mod desired_state;
pub(crate) mod events;
pub(crate) mod history;
pub(crate) mod identity;
pub(crate) mod resolve;
mod successors;
#[cfg(test)]
mod tests;

pub(crate) use catalogs::{CatalogAnswers, CatalogLookups};
pub(crate) use desired_state::{DesiredState, desired_state, superfluous};
pub(crate) use history::{BundleRef, History, Revision};
pub(crate) use identity::{CertificateProvider, RenderInputs};
pub(crate) use resolve::{Refusal, Resolved, resolve, unresolved};
