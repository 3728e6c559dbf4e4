//! Catalogs and bundles in images, pulled into the user's cache and read like directories.
//!
//! Every digest has its own cache entry, so that one can be read while another is pulled. A lock serialises the pulls
//! of several processes. Entries without use for a month are removed.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use olm_api::keys;
use olm_image::{Filter, HostPolicy, ImageConfig, Puller, Reference};
use sha2::{Digest as _, Sha256};

use super::error::SourceError;
use crate::cli::{AccessArgs, PullHosts};

/// Time for which the cache keeps a digest after its last use.
const RETENTION: Duration = Duration::from_hours(30 * 24);
/// Maximum wait for the lock of another process.
const LOCK_TIMEOUT: Duration = Duration::from_mins(15);
/// Interval between two attempts to lock the cache.
const LOCK_INTERVAL: Duration = Duration::from_millis(100);

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

/// An image in the cache.
pub(super) struct Pulled {
    /// Name for the catalog or bundle.
    pub(super) name: String,
    /// Directory of the content.
    pub(super) root: PathBuf,
    /// Reference by digest.
    pub(super) canonical: String,
}

/// Pulls the image unless it is cached.
pub(super) async fn fetch(
    reference: &str,
    access: &AccessArgs,
    purpose: Purpose,
) -> Result<Pulled, SourceError> {
    let parsed: Reference = reference.parse().map_err(|source| SourceError::Reference {
        reference: reference.to_owned(),
        source: Box::new(source),
    })?;
    let path = parsed.repository().path().to_owned();
    let name = path.rsplit('/').next().unwrap_or(&path).to_owned();
    let cache = cache_dir();
    // Held to the end: a new puller removes the unfinished pulls of others.
    let _lock = lock_cache(&cache).await?;
    let puller = Puller::new(ImageConfig {
        plain_http: access.plain_http.clone(),
        ca_dir: access.pull_cas_dir.clone(),
        registries_conf: access.registries_conf.clone(),
        auth_file: access.auth_file.clone(),
        hosts: match &access.hosts {
            PullHosts::Any => HostPolicy::anywhere(),
            PullHosts::Public(allowed) => HostPolicy::new(allowed.clone()),
        },
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
    let entries_dir = cache.join("unpack");
    touch(&entries_dir.join(&owner));
    for old in outdated(&entries_dir) {
        // Not fatal; the next pull tries again.
        if let Err(error) = puller.forget(&old).await {
            tracing::debug!(%error, old, "an old cache entry cannot be removed");
        }
    }
    Ok(Pulled {
        name,
        root: content.root,
        canonical: canonical.to_string(),
    })
}

/// Locks the cache against pulls of other processes.
async fn lock_cache(cache: &Path) -> Result<File, SourceError> {
    let path = cache.join("lock");
    let failed = |source| SourceError::Read {
        path: path.clone(),
        source,
    };
    fs::create_dir_all(cache).map_err(failed)?;
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(failed)?;
    let locked = tokio::time::timeout(LOCK_TIMEOUT, async {
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_INTERVAL).await,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    });
    locked.await.map_err(|_| SourceError::Busy {
        path: cache.to_owned(),
    })??;
    Ok(file)
}

/// Records the use of a cache entry.
fn touch(entry_dir: &Path) {
    let touched = File::open(entry_dir).and_then(|folder| folder.set_modified(SystemTime::now()));
    if let Err(error) = touched {
        tracing::debug!(%error, "the use of a cache entry cannot be recorded");
    }
}

/// Returns the cache entries without use for too long.
fn outdated(entries_dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(entries_dir) else {
        return Vec::new();
    };
    let is_old = |entry: &fs::DirEntry| {
        let used = entry.metadata().and_then(|metadata| metadata.modified());
        used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > RETENTION))
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

/// Returns the name of a cache entry.
fn owner(purpose: Purpose, reference: &str) -> String {
    let digest = Sha256::digest(reference);
    format!("{}{}", purpose.prefix(), HEXLOWER.encode(&digest[..16]))
}

/// Returns the folder of the user's cache.
pub(crate) fn cache_dir() -> PathBuf {
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
    fn only_our_old_entries_are_removed() {
        let entries_dir = tempfile::tempdir().unwrap();
        for name in ["catalog-new", "catalog-old", "other-old"] {
            fs::create_dir(entries_dir.path().join(name)).unwrap();
            if name.ends_with("old") {
                let old = SystemTime::now() - RETENTION - Duration::from_mins(1);
                File::open(entries_dir.path().join(name))
                    .unwrap()
                    .set_modified(old)
                    .unwrap();
            }
        }
        assert_eq!(outdated(entries_dir.path()), ["catalog-old"]);
        touch(&entries_dir.path().join("catalog-old"));
        assert!(outdated(entries_dir.path()).is_empty());
    }

    #[tokio::test]
    async fn pulls_are_serialised() {
        let cache = tempfile::tempdir().unwrap();
        let first = lock_cache(cache.path()).await.unwrap();
        let second = lock_cache(cache.path());
        tokio::pin!(second);
        assert!(
            tokio::time::timeout(LOCK_INTERVAL * 3, &mut second)
                .await
                .is_err()
        );
        drop(first);
        assert!(second.await.is_ok());
    }
}
