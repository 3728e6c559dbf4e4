//! Which packages of a catalog bring an API.
//!
//! Asked only when something is missing, and kept by content: the bundles of a catalog are read once, one at a time,
//! and only names of packages stay.

use std::collections::{BTreeSet, HashMap};

use olm_fbc::{Bundle, Limits, decode};
use parking_lot::Mutex;

use crate::client::{CatalogClient, CatalogRef, url};
use crate::error::ClientError;
use crate::read::{Capped, reader};

/// Most answers that are kept; all go when there are more.
const KEPT: usize = 256;
/// Most packages that are named.
const NAMED: usize = 16;

/// An API: group, version, kind.
type Api = (String, String, String);

/// Answers by catalog and API.
#[derive(Debug, Default)]
pub(crate) struct Providers(Mutex<HashMap<(String, Api), Answer>>);

impl Providers {
    pub(crate) fn forget(&self, catalog: &str) {
        self.0.lock().retain(|(of, _), _| of != catalog);
    }
}

/// The packages that bring an API, and the digest of the content that says so.
#[derive(Debug)]
struct Answer {
    digest: String,
    packages: Vec<String>,
}

impl CatalogClient {
    /// The packages of `catalog` with a bundle that brings the API (a property `olm.gvk`), by name, at most 16.
    ///
    /// # Errors
    /// [`ClientError`]; also when catalogd does not answer selections.
    pub async fn providers(
        &self,
        catalog: &CatalogRef,
        group: &str,
        version: &str,
        kind: &str,
    ) -> Result<Vec<String>, ClientError> {
        let api = (group.to_owned(), version.to_owned(), kind.to_owned());
        let key = (catalog.name.clone(), api.clone());
        if let Some(kept) = self.providers.0.lock().get(&key)
            && kept.digest == catalog.digest
        {
            return Ok(kept.packages.clone());
        }
        let bundles = url(catalog, "metas", &[("schema", "olm.bundle")])?;
        let response = self.answer(catalog, &bundles).await?;
        let (name, limit) = (catalog.name.clone(), self.limits.catalog);
        let packages =
            tokio::task::spawn_blocking(move || scan(Capped::new(reader(response), limit), &name, &api))
                .await
                .map_err(|_| ClientError::Interrupted {
                    catalog: catalog.name.clone(),
                })??;
        let mut kept = self.providers.0.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        let answer = Answer {
            digest: catalog.digest.clone(),
            packages: packages.clone(),
        };
        kept.insert(key, answer);
        Ok(packages)
    }
}

fn scan(bundles: impl std::io::Read, catalog: &str, api: &Api) -> Result<Vec<String>, ClientError> {
    let mut packages = BTreeSet::new();
    for meta in decode(bundles, &Limits::default()) {
        let meta = meta.map_err(|source| ClientError::Decode {
            catalog: catalog.to_owned(),
            source,
        })?;
        if packages.len() >= NAMED {
            break;
        }
        if packages.contains(&meta.package) {
            continue;
        }
        // One that does not read cannot be installed either.
        let Ok(bundle) = serde_json::from_slice::<Bundle>(&meta.blob) else {
            continue;
        };
        let brings = bundle.properties.iter().any(|property| {
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
        if brings {
            packages.insert(meta.package);
        }
    }
    Ok(packages.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::scan;

    #[test]
    fn packages_are_found_by_what_they_bring() {
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
        assert_eq!(scan(text.as_bytes(), "test", &api).unwrap(), ["a", "b"]);
        assert!(scan(&b"{"[..], "test", &api).is_err());
    }
}
