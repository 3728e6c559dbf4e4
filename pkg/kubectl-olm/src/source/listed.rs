//! Lists of the packages of a catalog.

use std::collections::BTreeSet;

use olm_fbc::schema;
use olm_packages::{Listings, PackageListing, PackageProfile, Profiles};
use olm_text::name::PackageName;

use super::catalog::Catalog;
use super::error::SourceError;
use super::query::Query;

impl Catalog {
    /// Returns the packages by name, except packages without an `olm.package` blob.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub(crate) async fn packages(&self) -> Result<Vec<PackageListing>, SourceError> {
        let add = |listings: &mut Listings, meta| listings.add(&meta);
        let listings = self.fold(&Query::Descriptions, Listings::default(), add).await?;
        Ok(listings.finish())
    }

    /// Returns the packages by name with everything that a page shows, except packages without an `olm.package` blob.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub(crate) async fn profiles(&self) -> Result<Vec<PackageProfile>, SourceError> {
        let add = |profiles: &mut Profiles, meta| profiles.add(&meta);
        let profiles = self.fold(&Query::Everything, Profiles::default(), add).await?;
        Ok(profiles.finish())
    }

    /// Returns the names of the packages.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub(crate) async fn package_names(&self) -> Result<BTreeSet<PackageName>, SourceError> {
        self.fold(&Query::Packages, BTreeSet::new(), |names, meta| {
            if meta.schema == schema::PACKAGE {
                names.insert(meta.name.into());
            }
            Ok(())
        })
        .await
    }
}
