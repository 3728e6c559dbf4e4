//! Bundles: files from a folder or an image, or the blob in a catalog.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use olm_fbc::schema;
use olm_text::name::{BundleName, PackageName};
use serde_json::Value;

use super::catalog::Catalog;
use super::error::SourceError;
use super::image;
use super::query::Query;
use crate::cli::AccessArgs;

/// Returns the files of a bundle by path. `word` is a folder, or else an image.
///
/// # Errors
/// `word` is neither, or cannot be read.
pub(crate) async fn files(word: &str, access: &AccessArgs) -> Result<BTreeMap<String, Vec<u8>>, SourceError> {
    let root = if Path::new(word).is_dir() {
        PathBuf::from(word)
    } else if word.starts_with('.') || word.starts_with('/') {
        return Err(SourceError::NotABundle { path: word.into() });
    } else {
        image::fetch(word, access, image::Purpose::Bundle).await?.1
    };
    let place = word.to_owned();
    let path = root.clone();
    tokio::task::spawn_blocking(move || olm_bundle_files::read(&root))
        .await
        .map_err(|_| SourceError::Interrupted { place })?
        .map_err(|source| SourceError::Bundle { path, source })
}

impl Catalog {
    /// Returns the whole `olm.bundle` of this name, with the properties that other queries omit.
    ///
    /// # Errors
    /// The catalog cannot be read.
    pub(crate) async fn whole_bundle(
        &self,
        package: &PackageName,
        bundle: &BundleName,
    ) -> Result<Option<Value>, SourceError> {
        let state = (bundle.clone(), None);
        let query = Query::Package(package.clone());
        let (_, found) = self
            .fold(&query, state, |state, meta| {
                if meta.schema == schema::BUNDLE && state.0 == meta.name.as_str() {
                    // The decoder writes blobs as JSON.
                    state.1 = serde_json::from_slice(&meta.blob).ok();
                }
                Ok(())
            })
            .await?;
        Ok(found)
    }
}
