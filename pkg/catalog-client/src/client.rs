//! Reads packages from catalogd.

use std::sync::Arc;

use olm_fbc::PackageContent;

use crate::{error::ClientError, trust::Trust};

/// A catalog as its status shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogRef {
    /// Its name.
    pub name: String,
    /// `status.urls.base`.
    pub base_url: String,
    /// `status.resolvedSource.image.ref`, or its digest: what the content is cached by.
    pub digest: String,
}

/// How much is read and kept. Sizes are bytes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The metas of one package.
    pub package: u64,
    /// A whole catalog, when it has to be read for one package.
    pub catalog: u64,
    /// All packages kept.
    pub cache: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            package: 64 * MIB,
            catalog: 4096 * MIB,
            cache: 64 * MIB,
        }
    }
}

/// Reads packages, and keeps them.
#[derive(Debug)]
pub struct CatalogClient {
    _trust: Trust,
    _limits: Limits,
}

impl CatalogClient {
    /// A client with the default limits.
    pub fn new(trust: Trust) -> Self {
        Self::with_limits(trust, Limits::default())
    }

    /// A client with other limits.
    pub fn with_limits(trust: Trust, limits: Limits) -> Self {
        Self {
            _trust: trust,
            _limits: limits,
        }
    }

    /// A package's content; `None` when the catalog has no such package.
    ///
    /// # Errors
    /// [`ClientError`]; for a failing catalog the last good content is returned instead when
    /// there is one.
    pub async fn package(
        &self,
        catalog: &CatalogRef,
        package: &str,
    ) -> Result<Option<Arc<PackageContent>>, ClientError> {
        let _ = package;
        Err(ClientError::NoContent {
            catalog: catalog.name.clone(),
        })
    }

    /// Drops all that is kept of a catalog.
    pub fn forget(&self, catalog: &str) {
        let _ = catalog;
    }
}
