//! Input and result of a resolution.

use crate::{DeprecationInfo, Explanation, HeldBack};
use olm_fbc::{PackageContent, Property};
use olm_text::name::{BundleName, CatalogName, ImageText, PackageName};
use olm_version::{BundleVersion, RequestedRange, VersionRelease};
use std::sync::Arc;

/// Request of the spec, and the installed bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The package.
    pub package: PackageName,
    /// Range of versions; none admits all.
    pub range: Option<RequestedRange>,
    /// Channels to choose from; empty admits all. They limit the upgrade edges, too.
    pub channels: Vec<String>,
    /// True if any version may follow the installed one (`upgradeConstraintPolicy: SelfCertified`).
    pub self_certified: bool,
    /// The installed bundle.
    pub installed: Option<Installed>,
    /// True if a bundle's `release` is compared on its own (gate `BundleReleaseSupport`).
    pub release_support: bool,
    /// Rule for the choice between catalogs.
    pub selection: Selection,
    /// Similar packages of the catalogs, if no catalog has this one; used in messages only.
    pub similar: Vec<String>,
}

/// The installed bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installed {
    /// The bundle's name.
    pub name: BundleName,
    /// The bundle's version, as recorded.
    pub version: BundleVersion,
    /// Catalog of the installed bundle, if known. As long as that catalog is in the input, the extension stays with it.
    pub catalog: Option<CatalogName>,
}

/// Rules for the choice between catalogs; see `docs/deviations.md`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Selection {
    /// Priority precedes deprecation; a catalog that cannot be read blocks only choices it could change; an installed
    /// extension stays with its catalog.
    #[default]
    Ours,
    /// Upstream's rule (gate `UpstreamCatalogSelection`).
    Upstream,
}

/// Catalog that the extension may choose from. The input excludes unavailable catalogs and those that the selector does
/// not match.
#[derive(Debug, Clone)]
pub struct CatalogInput {
    /// The catalog's name.
    pub name: CatalogName,
    /// Priority; higher precedes.
    pub priority: i32,
    /// Result of the lookup of the package.
    pub lookup: CatalogLookup,
}

/// Result of looking up the package in a catalog.
#[derive(Debug, Clone)]
pub enum CatalogLookup {
    /// The catalog has the package.
    Found(Arc<PackageContent>),
    /// The catalog does not have the package.
    NoSuchPackage,
    /// The catalog is not being served, so its packages are unknown.
    NotServing,
    /// The catalog could not be read; the reason as one phrase.
    Failed(String),
}

/// The chosen bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolution {
    /// The catalog it comes from.
    pub catalog: CatalogName,
    /// The bundle's name.
    pub bundle: BundleName,
    /// Its image.
    pub image: ImageText,
    /// Its version and release.
    pub version: VersionRelease,
    /// Its properties, without those that hold whole manifests.
    pub properties: Vec<Property>,
    /// Lowest version of Kubernetes that the bundle supports, if its catalog says it.
    pub min_kube_version: Option<String>,
    /// Deprecations of the package, its channels and its bundles.
    pub deprecation: DeprecationInfo,
    /// Catalogs that could not be read and could not have changed the choice, each with the reason.
    pub left_out: Vec<(CatalogName, String)>,
    /// Catalog of the installed bundle, if it is gone, disabled or no longer selected, so that the extension moves to
    /// another.
    pub moved_from: Option<CatalogName>,
    /// Higher successor that parts of the spec hold back.
    pub held_back: Option<HeldBack>,
    /// Reasons for this bundle and against every other one.
    pub explanation: Explanation,
}
