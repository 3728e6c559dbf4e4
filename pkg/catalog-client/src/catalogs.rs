//! Reads of catalogs, as the controllers need them.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use olm_text::name::{CatalogName, PackageName};

use crate::catalog_ref::CatalogRef;
use crate::client::{CatalogClient, PackageAnswer};
use crate::error::ClientError;

/// Source of the content of catalogs. [`CatalogClient`] asks catalogd; a test may hold the content in memory.
pub trait Catalogs: Send + Sync {
    /// Returns a package's content, as [`CatalogClient::package`] does.
    fn package<'a>(
        &'a self,
        catalog: &'a CatalogRef,
        package: &'a PackageName,
    ) -> BoxFuture<'a, Result<PackageAnswer, ClientError>>;

    /// Returns the names of the packages of `catalog`, as [`CatalogClient::package_names`] does.
    fn package_names<'a>(
        &'a self,
        catalog: &'a CatalogRef,
    ) -> BoxFuture<'a, Result<Arc<[PackageName]>, ClientError>>;

    /// Returns the packages that provide the API (group, version, kind), as [`CatalogClient::providers`] does.
    fn providers<'a>(
        &'a self,
        catalog: &'a CatalogRef,
        api: [&'a str; 3],
    ) -> BoxFuture<'a, Result<Vec<PackageName>, ClientError>>;

    /// Drops the cached data of a catalog.
    fn forget(&self, catalog: &CatalogName);
}

impl Catalogs for CatalogClient {
    fn package<'a>(
        &'a self,
        catalog: &'a CatalogRef,
        package: &'a PackageName,
    ) -> BoxFuture<'a, Result<PackageAnswer, ClientError>> {
        Self::package(self, catalog, package).boxed()
    }

    fn package_names<'a>(
        &'a self,
        catalog: &'a CatalogRef,
    ) -> BoxFuture<'a, Result<Arc<[PackageName]>, ClientError>> {
        Self::package_names(self, catalog).boxed()
    }

    fn providers<'a>(
        &'a self,
        catalog: &'a CatalogRef,
        [group, version, kind]: [&'a str; 3],
    ) -> BoxFuture<'a, Result<Vec<PackageName>, ClientError>> {
        Self::providers(self, catalog, group, version, kind).boxed()
    }

    fn forget(&self, catalog: &CatalogName) {
        Self::forget(self, catalog);
    }
}
