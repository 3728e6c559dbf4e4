//! Packages of a catalog that provide an API.
//!
//! They are looked up only if an API is missing. The catalog's bundles are read once, one at a time, and only package
//! names are kept.

use std::collections::BTreeSet;

use olm_fbc::{Bundle, Limits, decode, schema};
use olm_text::name::{CatalogName, PackageName};

use crate::catalog_ref::CatalogRef;
use crate::connection::Transport;
use crate::error::ClientError;
use crate::result_cache::ResultCache;

/// Maximum number of cached results.
const MAX_CACHED: usize = 256;
/// Maximum number of packages in a result.
const MAX_PACKAGES: usize = 16;

/// API: group, version, kind.
pub(crate) type Api = (String, String, String);

/// Packages by catalog and API.
pub(crate) type Providers = ResultCache<Api, Vec<PackageName>>;

/// Creates an empty cache.
pub(crate) fn cache() -> Providers {
    ResultCache::new(MAX_CACHED)
}

/// Returns the packages of `catalog` that provide the API. A response has at most `limit` bytes.
pub(crate) async fn get(
    cache: &Providers,
    transport: &Transport,
    catalog: &CatalogRef,
    api: Api,
    limit: u64,
) -> Result<Vec<PackageName>, ClientError> {
    let query = (schema::BUNDLE, limit);
    let wanted = api.clone();
    cache
        .get(transport, catalog, api, query, move |bundles, name| {
            scan(bundles, name, &wanted)
        })
        .await
}

fn scan(
    bundles: impl std::io::Read,
    catalog: &CatalogName,
    api: &Api,
) -> Result<Vec<PackageName>, ClientError> {
    let mut packages = BTreeSet::new();
    for meta in decode(bundles, &Limits::default()) {
        let meta = meta.map_err(|source| ClientError::Decode {
            catalog: catalog.clone(),
            source,
        })?;
        if packages.len() >= MAX_PACKAGES {
            break;
        }
        if packages.contains(&meta.package) {
            continue;
        }
        // A bundle that cannot be parsed cannot be installed either.
        let Ok(bundle) = serde_json::from_slice::<Bundle>(&meta.blob) else {
            continue;
        };
        let provides = bundle.properties.iter().any(|property| {
            let is = |key: &str, text: &str| {
                property
                    .value
                    .get(key)
                    .and_then(serde_json::Value::as_str)
                    .unwrap_or_default()
                    == text
            };
            property.type_ == "olm.gvk" && is("group", &api.0) && is("version", &api.1) && is("kind", &api.2)
        });
        if provides {
            packages.insert(meta.package);
        }
    }
    Ok(packages.into_iter().map(PackageName::from).collect())
}

#[cfg(test)]
mod tests {
    use super::scan;

    #[test]
    fn packages_are_found_by_their_apis() {
        let bundle = |package: &str, kind: &str| {
            format!(
                "{{\"schema\":\"olm.bundle\",\"package\":\"{package}\",\"name\":\"{package}.v1\",\"properties\":[{{\"type\":\"olm.gvk\",\
                 \"value\":{{\"group\":\"g.example.com\",\"version\":\"v1\",\"kind\":\"{kind}\"}}}}]}}\n"
            )
        };
        let text = [
            bundle("b", "Kind"),
            bundle("a", "Kind"),
            bundle("a", "Kind"),
            bundle("c", "Other"),
        ]
        .concat();
        let api = ("g.example.com".to_owned(), "v1".to_owned(), "Kind".to_owned());
        assert_eq!(scan(text.as_bytes(), &"test".into(), &api).unwrap(), ["a", "b"]);
        assert!(scan(&b"{"[..], &"test".into(), &api).is_err());
    }
}
