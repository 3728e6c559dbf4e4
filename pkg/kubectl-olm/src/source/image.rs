//! A catalog or a bundle in an image: pulled into the user's cache, then read like a directory.
//!
//! Every digest has its own place, so that one can be read while another is pulled. Pulls of several
//! processes go one after another. What was not asked for in a month is removed.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use olm_api::keys;
use olm_image::{Filter, HostPolicy, ImageConfig, Puller, Reference};
use sha2::{Digest as _, Sha256};

use super::error::SourceError;
use crate::cli::AccessArgs;

/// Time for which the cache keeps a digest after its last use.
const KEPT: Duration = Duration::from_hours(30 * 24);
/// Longest wait for another process that pulls.
const OTHERS: Duration = Duration::from_mins(15);
const PAUSE: Duration = Duration::from_millis(100);
/// Purpose of a pulled image.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Catalog,
    Bundle,
}

impl Purpose {
    /// Prefix of the cache entries for this purpose.
    fn prefix(self) -> &'static str {
        match self {
            Self::Catalog => "catalog-",
            Self::Bundle => "bundle-",
        }
    }

    fn filter(self) -> Filter {
        match self {
            Self::Catalog => Filter::LabelDir(keys::CATALOG_CONFIGS_IMAGE_LABEL),
            Self::Bundle => Filter::All,
        }
    }
}

/// Pulls the image unless the cache has it; gives a name for its content and the directory.
pub(super) async fn fetch(
    reference: &str,
    access: &AccessArgs,
    purpose: Purpose,
) -> Result<(String, PathBuf), SourceError> {
    let parsed: Reference = reference.parse().map_err(|source| SourceError::Reference {
        reference: reference.to_owned(),
        source: Box::new(source),
    })?;
    let path = parsed.repository().path().to_owned();
    let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
    let cache = cache_dir();
    // Held to the end: a new puller takes the unfinished pulls of others for leftovers.
    let _alone = alone(&cache).await?;
    let puller = Puller::new(ImageConfig {
        plain_http: access.plain_http.clone(),
        ca_dir: access.pull_cas_dir.clone(),
        registries_conf: access.registries_conf.clone(),
        auth_file: access.auth_file.clone(),
        // Who runs this may talk to whomever they can reach.
        hosts: HostPolicy::anywhere(),
        ..ImageConfig::new(&cache)
    });
    let failed = |source| SourceError::Image {
        reference: reference.to_owned(),
        source: Box::new(source),
    };
    let canonical = puller.resolve(&parsed).await.map_err(failed)?;
    let owner = owner(purpose, &canonical.to_string());
    let content = puller
        .fetch_as(&owner, &parsed, &canonical, purpose.filter())
        .await
        .map_err(failed)?;
    let places = cache.join("unpack");
    touch(&places.join(&owner));
    for old in outdated(&places) {
        // It is in nobody's way; the next pull tries again.
        if let Err(error) = puller.forget(&old).await {
            tracing::debug!(%error, old, "an old catalog stays in the cache");
        }
    }
    Ok((name, content.root))
}

/// Waits until no other process pulls into the cache.
async fn alone(cache: &Path) -> Result<File, SourceError> {
    let path = cache.join("lock");
    let trouble = |source| SourceError::Read {
        path: path.clone(),
        source,
    };
    fs::create_dir_all(cache).map_err(trouble)?;
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(trouble)?;
    let locked = tokio::time::timeout(OTHERS, async {
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
                Err(TryLockError::Error(error)) => return Err(trouble(error)),
            }
        }
    });
    locked.await.map_err(|_| SourceError::Busy {
        path: cache.to_owned(),
    })??;
    Ok(file)
}

/// Notes that a place was asked for now.
fn touch(place: &Path) {
    let touched = File::open(place).and_then(|folder| folder.set_modified(SystemTime::now()));
    if let Err(error) = touched {
        tracing::debug!(%error, "the use of a cached catalog is not noted");
    }
}

/// The places that were last asked for too long ago.
fn outdated(places: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(places) else {
        return Vec::new();
    };
    let is_old = |entry: &fs::DirEntry| {
        let used = entry.metadata().and_then(|metadata| metadata.modified());
        used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > KEPT))
    };
    entries
        .flatten()
        .filter(is_old)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            [Purpose::Catalog, Purpose::Bundle]
                .iter()
                .any(|purpose| name.starts_with(purpose.prefix()))
        })
        .collect()
}

/// A name that is valid as the owner of a place in the cache.
fn owner(purpose: Purpose, reference: &str) -> String {
    let digest = Sha256::digest(reference);
    format!("{}{}", purpose.prefix(), HEXLOWER.encode(&digest[..16]))
}

fn cache_dir() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("kubectl-olm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_old_places_of_ours_are_removed() {
        let places = tempfile::tempdir().unwrap();
        for name in ["catalog-new", "catalog-old", "other-old"] {
            fs::create_dir(places.path().join(name)).unwrap();
            if name.ends_with("old") {
                let old = SystemTime::now() - KEPT - Duration::from_mins(1);
                File::open(places.path().join(name))
                    .unwrap()
                    .set_modified(old)
                    .unwrap();
            }
        }
        assert_eq!(outdated(places.path()), ["catalog-old"]);
        touch(&places.path().join("catalog-old"));
        assert!(outdated(places.path()).is_empty());
    }

    #[tokio::test]
    async fn pulls_go_one_after_another() {
        let cache = tempfile::tempdir().unwrap();
        let first = alone(cache.path()).await.unwrap();
        let second = alone(cache.path());
        tokio::pin!(second);
        assert!(tokio::time::timeout(PAUSE * 3, &mut second).await.is_err());
        drop(first);
        assert!(second.await.is_ok());
    }
}
