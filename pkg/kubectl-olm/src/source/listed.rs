//! Lists of the packages of a catalog.

use std::collections::BTreeSet;

use olm_fbc::schema;
use olm_packages::{Listings, PackageListing};
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
