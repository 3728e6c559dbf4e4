//! The names of a catalog's packages.
//!
//! Asked only when a package is missing, and kept by content: of each package only the name stays.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use olm_fbc::{Limits, decode, schema};
use parking_lot::Mutex;

use crate::client::{CatalogClient, CatalogRef, url};
use crate::error::ClientError;
use crate::read::{Capped, reader};

/// Most catalogs whose names are kept; all go when there are more.
const KEPT: usize = 32;
/// Most bytes of the names of one catalog.
const BYTES: usize = 512 * 1024;
/// Longest name, as the API server admits it.
const LONGEST: usize = 253;

/// Names by catalog.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<HashMap<String, Known>>);

/// The names of one content.
#[derive(Debug)]
struct Known {
    digest: String,
    names: Arc<[String]>,
}

impl Names {
    pub(crate) fn forget(&self, catalog: &str) {
        self.0.lock().remove(catalog);
    }
}

impl CatalogClient {
    /// The names of the packages of `catalog`, sorted; of a catalog with more than 512 KiB of them the first.
    ///
    /// # Errors
    /// [`ClientError`]; also when catalogd does not answer selections.
    pub async fn package_names(&self, catalog: &CatalogRef) -> Result<Arc<[String]>, ClientError> {
        if let Some(known) = self.names.0.lock().get(&catalog.name)
            && known.digest == catalog.digest
        {
            return Ok(known.names.clone());
        }
        let packages = url(catalog, "metas", &[("schema", schema::PACKAGE)])?;
        let response = self.answer(catalog, &packages).await?;
        let (name, limit) = (catalog.name.clone(), self.limits.package);
        let names = tokio::task::spawn_blocking(move || scan(Capped::new(reader(response), limit), &name))
            .await
            .map_err(|_| ClientError::Interrupted {
                catalog: catalog.name.clone(),
            })??;
        let mut kept = self.names.0.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        let known = Known {
            digest: catalog.digest.clone(),
            names: names.clone(),
        };
        kept.insert(catalog.name.clone(), known);
        Ok(names)
    }
}

fn scan(packages: impl std::io::Read, catalog: &str) -> Result<Arc<[String]>, ClientError> {
    let mut names = BTreeSet::new();
    let mut bytes = 0;
    for meta in decode(packages, &Limits::default()) {
        let meta = meta.map_err(|source| ClientError::Decode {
            catalog: catalog.to_owned(),
            source,
        })?;
        if meta.schema != schema::PACKAGE || meta.name.len() > LONGEST {
            continue;
        }
        bytes += meta.name.len();
        if bytes > BYTES {
            break;
        }
        names.insert(meta.name);
    }
    Ok(names.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::{BYTES, scan};

    fn package(name: &str) -> String {
        format!("{{\"schema\":\"olm.package\",\"name\":\"{name}\"}}\n")
    }

    #[test]
    fn names_are_bounded() {
        let names = |text: &str| scan(text.as_bytes(), "test").map(|names| names.to_vec());
        let text = [
            package("b"),
            package(&"x".repeat(254)),
            package("a"),
            package("b"),
        ]
        .concat();
        assert_eq!(names(&text).unwrap(), ["a", "b"]);
        let long = |at: usize| package(&format!("{at:0>250}"));
        let many: String = (0..BYTES / 250 + 10).map(long).collect();
        assert_eq!(names(&many).unwrap().len(), BYTES / 250);
        assert!(names("{").is_err());
    }
}
