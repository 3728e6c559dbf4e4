//! A catalog in an image: pulled into the user's cache, then read like a directory.

use std::path::PathBuf;

use olm_api::keys;
use olm_image::{Filter, ImageConfig, Puller, Reference};
use sha2::{Digest as _, Sha256};

use super::SourceError;
use crate::cli::AccessArgs;

/// Pulls the image unless the cache has it; gives a name for the catalog and its directory.
pub(super) async fn fetch(reference: &str, access: &AccessArgs) -> Result<(String, PathBuf), SourceError> {
    let parsed: Reference = reference.parse().map_err(|source| SourceError::Reference {
        reference: reference.to_owned(),
        source: Box::new(source),
    })?;
    let path = parsed.repository().path().to_owned();
    let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
    let puller = Puller::new(ImageConfig {
        plain_http: access.plain_http.clone(),
        ca_dir: access.pull_cas_dir.clone(),
        registries_conf: access.registries_conf.clone(),
        auth_file: access.auth_file.clone(),
        ..ImageConfig::new(cache_dir())
    });
    let failed = |source| SourceError::Image {
        reference: reference.to_owned(),
        source: Box::new(source),
    };
    let canonical = puller.resolve(&parsed).await.map_err(failed)?;
    let filter = Filter::LabelDir(keys::CATALOG_CONFIGS_IMAGE_LABEL);
    // One place for each digest: the puller keeps one digest for an owner, and another process may be
    // reading the older one.
    let content = puller
        .fetch(&owner(&canonical.to_string()), &canonical, filter)
        .await
        .map_err(failed)?;
    Ok((name, content.root))
}

/// A name that is valid as the owner of a place in the cache.
fn owner(reference: &str) -> String {
    let digest = Sha256::digest(reference);
    let hex: String = digest
        .iter()
        .take(16)
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|nibble| char::from_digit(u32::from(nibble), 16))
        .collect();
    format!("catalog-{hex}")
}

fn cache_dir() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("kubectl-olm")
}
