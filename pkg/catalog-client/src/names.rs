//! Names of a catalog's packages.
//!
//! They are read only if a package is missing; other fields of the packages are dropped.

use std::collections::BTreeSet;
use std::sync::Arc;

use olm_fbc::{Limits, decode, schema};
use olm_text::name::{CatalogName, PackageName};

use crate::catalog_ref::CatalogRef;
use crate::connection::Transport;
use crate::error::ClientError;
use crate::result_cache::ResultCache;

/// Maximum number of catalogs in the cache.
const MAX_CACHED: usize = 32;
/// Maximum size of the names of one catalog, in bytes.
const MAX_BYTES: usize = 512 * 1024;
/// Maximum length of a name, as in the API's validation.
const MAX_NAME_BYTES: usize = 253;

/// Package names by catalog.
pub(crate) type PackageNames = ResultCache<(), Arc<[PackageName]>>;

/// Creates an empty cache.
pub(crate) fn cache() -> PackageNames {
    ResultCache::new(MAX_CACHED)
}

/// Returns the names of the packages of `catalog`. A response has at most `limit` bytes.
pub(crate) async fn get(
    cache: &PackageNames,
    transport: &Transport,
    catalog: &CatalogRef,
    limit: u64,
) -> Result<Arc<[PackageName]>, ClientError> {
    let query = (schema::PACKAGE, limit);
    cache
        .get(transport, catalog, (), query, |packages, name| {
            scan(packages, name)
        })
        .await
}

fn scan(packages: impl std::io::Read, catalog: &CatalogName) -> Result<Arc<[PackageName]>, ClientError> {
    let mut names = BTreeSet::new();
    let mut bytes = 0;
    for meta in decode(packages, &Limits::default()) {
        let meta = meta.map_err(|source| ClientError::Decode {
            catalog: catalog.clone(),
            source,
        })?;
        if meta.schema != schema::PACKAGE || meta.name.len() > MAX_NAME_BYTES {
            continue;
        }
        bytes += meta.name.len();
        if bytes > MAX_BYTES {
            break;
        }
        names.insert(meta.name);
    }
    Ok(names.into_iter().map(PackageName::from).collect())
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, scan};

    fn package(name: &str) -> String {
        format!("{{\"schema\":\"olm.package\",\"name\":\"{name}\"}}\n")
    }

    #[test]
    fn names_are_bounded() {
        let names = |text: &str| scan(text.as_bytes(), &"test".into()).map(|names| names.to_vec());
        let text = [
            package("b"),
            package(&"x".repeat(254)),
            package("a"),
            package("b"),
        ]
        .concat();
        assert_eq!(names(&text).unwrap(), ["a", "b"]);
        let long = |at: usize| package(&format!("{at:0>250}"));
        let many: String = (0..MAX_BYTES / 250 + 10).map(long).collect();
        assert_eq!(names(&many).unwrap().len(), MAX_BYTES / 250);
        assert!(names("{").is_err());
    }
}
