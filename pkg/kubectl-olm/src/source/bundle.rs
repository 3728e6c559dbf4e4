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

/// Content of a bundle.
pub(crate) struct BundleContent {
    /// Files by path.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Reference of the image by digest; none for a folder.
    pub(crate) image: Option<String>,
}

/// Returns the files of a bundle by path. `word` is a folder, or else an image.
///
/// # Errors
/// `word` is neither, or cannot be read.
pub(crate) async fn files(word: &str, access: &AccessArgs) -> Result<BTreeMap<String, Vec<u8>>, SourceError> {
    Ok(content(word, access).await?.files)
}

/// Returns the content of a bundle like [`files`].
///
/// # Errors
/// `word` is neither a folder nor an image, or cannot be read.
pub(crate) async fn content(word: &str, access: &AccessArgs) -> Result<BundleContent, SourceError> {
    let (root, image) = root(word, access).await?;
    read(word, root, image).await
}

/// Returns the content of a bundle whose image a catalog names. The catalog must not name a folder of this machine.
///
/// # Errors
/// The image cannot be pulled or read.
pub(crate) async fn content_of_image(
    reference: &str,
    access: &AccessArgs,
) -> Result<BundleContent, SourceError> {
    let (root, image) = root_of_image(reference, access).await?;
    read(reference, root, Some(image)).await
}

async fn read(word: &str, root: PathBuf, image: Option<String>) -> Result<BundleContent, SourceError> {
    let place = word.to_owned();
    let path = root.clone();
    let files = tokio::task::spawn_blocking(move || olm_bundle_files::read(&root))
        .await
        .map_err(|_| SourceError::Interrupted { place })?
        .map_err(|source| SourceError::Bundle { path, source })?;
    Ok(BundleContent { files, image })
}

/// Returns the folder of a bundle, and the reference by digest of the image that it comes from. `word` is a folder, or else an image.
///
/// # Errors
/// `word` is neither, or the image cannot be pulled.
async fn root(word: &str, access: &AccessArgs) -> Result<(PathBuf, Option<String>), SourceError> {
    if Path::new(word).is_dir() {
        Ok((PathBuf::from(word), None))
    } else if word.starts_with('.') || word.starts_with('/') {
        Err(SourceError::NotABundle { path: word.into() })
    } else {
        let (root, image) = root_of_image(word, access).await?;
        Ok((root, Some(image)))
    }
}

/// Returns the folder of a bundle whose image a catalog names, and the reference by digest.
///
/// # Errors
/// The image cannot be pulled.
pub(crate) async fn root_of_image(
    reference: &str,
    access: &AccessArgs,
) -> Result<(PathBuf, String), SourceError> {
    let pulled = image::fetch(reference, access, image::Purpose::Bundle).await?;
    Ok((pulled.root, pulled.canonical))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_catalog_names_no_folder_of_this_machine() {
        let access = AccessArgs::default();
        let (word, own) = ("src", content("src", &access).await);
        assert!(!matches!(own, Err(SourceError::Reference { .. })), "a user may");
        let named = content_of_image(word, &access).await;
        assert!(matches!(named, Err(SourceError::Reference { .. })));
        let absolute = std::env::current_dir().unwrap().join("src");
        let named = root_of_image(&absolute.display().to_string(), &access).await;
        assert!(matches!(named, Err(SourceError::Reference { .. })));
    }
}
