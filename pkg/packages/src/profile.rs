//! Everything about the packages of a catalog that a page shows.

use std::collections::BTreeMap;

use olm_fbc::{Bundle, ContentError, Meta, PackageBuilder, PackageContent, schema};
use olm_text::name::PackageName;
use olm_version::VersionRelease;

use crate::icon::Icon;
use crate::listing::{Listings, PackageListing};
use crate::metadata::Metadata;

/// Package with its content, its icon and the description of its highest version.
#[derive(Clone, Debug, Default)]
pub struct PackageProfile {
    /// The package in a list.
    pub listing: PackageListing,
    /// Channels, bundles and deprecations.
    pub content: PackageContent,
    /// Description of the bundle of the highest version that has one.
    pub metadata: Metadata,
    /// Icon.
    pub icon: Option<Icon>,
}

/// Packages with their content during a read of their catalog.
#[derive(Debug, Default)]
pub struct Profiles {
    listings: Listings,
    packages: BTreeMap<PackageName, Read>,
}

/// Package during a read of its catalog.
#[derive(Debug, Default)]
struct Read {
    builder: PackageBuilder,
    metadata: Metadata,
    described: Option<VersionRelease>,
    icon: Option<Icon>,
}

impl Profiles {
    /// Adds a meta of the catalog.
    ///
    /// # Errors
    /// The meta does not match its schema.
    pub fn add(&mut self, meta: &Meta) -> Result<(), ContentError> {
        let name = if meta.schema == schema::PACKAGE {
            meta.name.as_str()
        } else {
            meta.package.as_str()
        };
        if name.is_empty() {
            return Ok(());
        }
        self.listings.add(meta)?;
        let package = self.packages.entry(name.into()).or_insert_with(|| Read {
            builder: PackageBuilder::new(name),
            ..Read::default()
        });
        package.builder.add(meta)?;
        match meta.schema.as_str() {
            schema::PACKAGE => package.icon = Icon::of(meta),
            schema::BUNDLE => package.describe(meta),
            _ => {}
        }
        Ok(())
    }

    /// Returns the packages by name, except packages without an `olm.package` meta.
    pub fn finish(mut self) -> Vec<PackageProfile> {
        let listings = self.listings.finish().into_iter();
        let packages = listings.filter_map(|listing| {
            let read = self.packages.remove(&listing.name)?;
            Some(PackageProfile {
                listing,
                content: read.builder.finish(),
                metadata: read.metadata,
                icon: read.icon,
            })
        });
        packages.collect()
    }
}

impl Read {
    /// Keeps the description of a bundle if no bundle of a higher version has one.
    fn describe(&mut self, bundle: &Meta) {
        let version = serde_json::from_slice::<Bundle>(&bundle.blob)
            .ok()
            .and_then(|bundle| bundle.version_release(false).ok());
        let is_higher = match (&version, &self.described) {
            (Some(version), Some(described)) => described.cmp_precedence(version).is_le(),
            (version, described) => version.is_some() || described.is_none(),
        };
        if !is_higher {
            return;
        }
        if let Some(metadata) = Metadata::of(bundle) {
            self.metadata = metadata;
            self.described = version;
        }
    }
}
