//! Cache of unpacked images on disk: `unpack/<owner>/<digest>/`, each complete or absent.
//!
//! The directory of a digest holds `rootfs` and, written last, `image.json` with the image's labels. It is built as
//! `.tmp-*` in the same directory and renamed once it is on disk. Content survives a restart unless it is transient
//! ([`crate::ImageConfig::durable`]).

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use olm_text::dns::is_subdomain;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::{content, error::Error, reference::Digest};

/// Prefix of directories that are being built.
const TEMPORARY: &str = ".tmp-";
/// Directory of the image's content.
pub(crate) const ROOT: &str = "rootfs";
/// File with metadata of the image; its presence marks the directory as complete.
const MARKER: &str = "image.json";
/// Maximum size of a marker, in bytes.
const MAX_MARKER_BYTES: u64 = 16 * 1024 * 1024;

/// Metadata of an unpacked image.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    pub(crate) labels: BTreeMap<String, String>,
    /// Label that selected the content, and the directory that it named.
    pub(crate) filter: Option<(String, String)>,
    /// Fingerprint of the signature policy that accepted the image; `None` if there was no policy.
    #[serde(default)]
    pub(crate) policy: Option<String>,
    /// Digest of the content, of durable content only. Content of a version without this field is pulled again.
    #[serde(default)]
    content: Option<String>,
}

impl Marker {
    /// Describes content that is not published yet.
    pub(crate) fn new(
        labels: BTreeMap<String, String>,
        filter: Option<(String, String)>,
        policy: Option<String>,
    ) -> Self {
        Self {
            labels,
            filter,
            policy,
            content: None,
        }
    }
}

/// Complete image in the cache.
#[derive(Debug)]
pub(crate) struct CachedImage {
    pub(crate) root: PathBuf,
    pub(crate) marker: Marker,
    pub(crate) unpacked_at: SystemTime,
}

/// Directory of one owner's images.
#[derive(Clone, Debug)]
pub(crate) struct OwnerDir {
    directory: PathBuf,
    /// Content must be synced before it becomes visible.
    durable: bool,
}

impl OwnerDir {
    /// Returns the directory of an owner. Validates the owner's name, which becomes part of the path.
    pub(crate) fn new(cache: &Path, owner: &str, durable: bool) -> Result<Self, Error> {
        if !is_subdomain(owner) {
            return Err(Error::Owner(owner.to_owned()));
        }
        Ok(Self {
            directory: cache.join("unpack").join(owner),
            durable,
        })
    }

    fn image_dir(&self, digest: &Digest) -> PathBuf {
        self.directory.join(digest.to_string())
    }

    /// Returns the image with a digest if it is complete, undamaged, and was selected by this label.
    pub(crate) fn find(&self, digest: &Digest, filter: Option<&str>) -> Result<Option<CachedImage>, Error> {
        let path = self.image_dir(digest);
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(Error::Cache {
                    action: "look at",
                    path,
                    source,
                });
            }
        };
        let root = path.join(ROOT);
        let marker = crate::files::read_capped_blocking(&path.join(MARKER), MAX_MARKER_BYTES)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Marker>(&bytes).ok())
            .filter(|marker| marker.filter.as_ref().map(|(label, _)| label.as_str()) == filter);
        if let Some(marker) = marker
            && root.is_dir()
            && (!self.durable || is_undamaged(&root, &marker))
        {
            let unpacked_at = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            return Ok(Some(CachedImage {
                root,
                marker,
                unpacked_at,
            }));
        }
        tracing::info!(path = %path.display(), "replacing incomplete, damaged or differently filtered content");
        remove(&path)?;
        Ok(None)
    }

    /// Creates a temporary directory to unpack into, on the same file system.
    pub(crate) fn temporary(&self) -> Result<TempDir, Error> {
        let failed = |source| Error::Cache {
            action: "write to",
            path: self.directory.clone(),
            source,
        };
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&self.directory)
            .map_err(failed)?;
        tempfile::Builder::new()
            .prefix(TEMPORARY)
            .tempdir_in(&self.directory)
            .map_err(failed)
    }

    /// Moves an unpacked image into place with its `marker`, synced if the cache is durable.
    pub(crate) fn publish(
        &self,
        content: &Path,
        digest: &Digest,
        mut marker: Marker,
    ) -> Result<CachedImage, Error> {
        let path = self.image_dir(digest);
        let failed = |action| {
            let path = path.clone();
            move |source| Error::Cache { action, path, source }
        };
        if self.durable {
            marker.content = Some(content::digest(&content.join(ROOT)).map_err(failed("read"))?);
        }
        let text = serde_json::to_vec(&marker).map_err(|error| failed("describe")(error.into()))?;
        fs::write(content.join(MARKER), text).map_err(failed("write to"))?;
        if self.durable {
            let directory = File::open(content).map_err(failed("write to"))?;
            // One call for the whole file system: syncing thousands of small files one by one is slow.
            rustix::fs::syncfs(&directory).map_err(|error| failed("sync")(error.into()))?;
        }
        remove(&path)?;
        fs::rename(content, &path).map_err(failed("move content to"))?;
        if self.durable {
            File::open(&self.directory)
                .and_then(|directory| directory.sync_all())
                .map_err(failed("sync"))?;
        }
        self.find(digest, marker.filter.as_ref().map(|(label, _)| label.as_str()))?
            .ok_or_else(|| failed("find")(io::ErrorKind::NotFound.into()))
    }

    /// Removes all digests but one. Failed removals are retried next time.
    pub(crate) fn keep_only(&self, digest: &Digest) {
        let keep = digest.to_string();
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return;
        };
        for entry in entries.flatten() {
            if entry.file_name() != *keep
                && let Err(error) = remove(&entry.path())
            {
                tracing::warn!(error = error.message(), "error deleting old images");
            }
        }
    }

    /// Removes all content of the owner.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        remove(&self.directory)
    }
}

/// Removes leftovers of interrupted pulls. If content is not durable, removes all of it: a marker may be on disk
/// without the content that it marks.
pub(crate) fn remove_leftovers(cache: &Path, durable: bool) {
    let Ok(owners) = fs::read_dir(cache.join("unpack")) else {
        return;
    };
    for entry in owners
        .flatten()
        .filter_map(|owner| fs::read_dir(owner.path()).ok())
        .flatten()
        .flatten()
    {
        if (!durable || entry.file_name().to_string_lossy().starts_with(TEMPORARY))
            && let Err(error) = remove(&entry.path())
        {
            tracing::warn!(
                error = error.message(),
                "could not remove a leftover of an interrupted pull"
            );
        }
    }
}

/// Compares content with the digest that its marker has.
fn is_undamaged(root: &Path, marker: &Marker) -> bool {
    let Some(expected) = &marker.content else {
        return false;
    };
    match content::digest(root) {
        Ok(found) if found == *expected => true,
        Ok(_) => {
            tracing::warn!(path = %root.display(), "the unpacked image is damaged; pulling it again");
            false
        }
        Err(error) => {
            tracing::warn!(path = %root.display(), %error, "the unpacked image is unreadable; pulling it again");
            false
        }
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::Cache {
            action: "remove",
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
    const NEW: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";

    #[test]
    fn only_names_of_objects_are_owners() {
        let cache = Path::new("/cache");
        for good in ["a", "a.b", "operatorhubio", "a-1.b-2"] {
            assert!(OwnerDir::new(cache, good, true).is_ok(), "{good}");
        }
        let long = "a".repeat(254);
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "../a",
            "A",
            "-a",
            "a.",
            "a..b",
            "a_b",
            "a\0",
            long.as_str(),
        ] {
            assert!(OwnerDir::new(cache, bad, true).is_err(), "{bad}");
        }
    }

    fn publish(owner_dir: &OwnerDir, digest: &str) -> CachedImage {
        let temporary = owner_dir.temporary().unwrap();
        let content = temporary.path().join("content");
        fs::create_dir_all(content.join(ROOT)).unwrap();
        fs::write(content.join(ROOT).join("file"), "content").unwrap();
        let marker = Marker::new(BTreeMap::new(), None, None);
        owner_dir
            .publish(&content, &digest.parse().unwrap(), marker)
            .unwrap()
    }

    #[test]
    fn damaged_content_is_not_used() {
        let cache = tempfile::tempdir().unwrap();
        let owner_dir = OwnerDir::new(cache.path(), "owner", true).unwrap();
        let cached = publish(&owner_dir, OLD);
        fs::write(cached.root.join("file"), "Content").unwrap();
        assert!(owner_dir.find(&OLD.parse().unwrap(), None).unwrap().is_none());
        assert!(!cached.root.exists());
    }

    #[test]
    fn publishes_atomically_and_keeps_one() {
        let cache = tempfile::tempdir().unwrap();
        let owner_dir = OwnerDir::new(cache.path(), "owner", true).unwrap();
        publish(&owner_dir, OLD);
        let cached = publish(&owner_dir, NEW);
        assert_eq!(
            cached.root,
            cache.path().join("unpack/owner").join(NEW).join(ROOT)
        );
        owner_dir.keep_only(&NEW.parse().unwrap());
        assert!(owner_dir.find(&OLD.parse().unwrap(), None).unwrap().is_none());
        let again = owner_dir.find(&NEW.parse().unwrap(), None).unwrap().unwrap();
        assert_eq!(again.unpacked_at, cached.unpacked_at);
        // Another filter selects other content.
        assert!(
            owner_dir
                .find(&NEW.parse().unwrap(), Some("label"))
                .unwrap()
                .is_none()
        );
        assert!(owner_dir.find(&NEW.parse().unwrap(), None).unwrap().is_none());
        owner_dir.clear().unwrap();
        owner_dir.clear().unwrap();
    }

    #[test]
    fn leftovers_and_incomplete_content_are_removed() {
        let cache = tempfile::tempdir().unwrap();
        let owner_dir = OwnerDir::new(cache.path(), "owner", true).unwrap();
        let leftover = owner_dir.temporary().unwrap().keep();
        publish(&owner_dir, OLD);
        remove_leftovers(cache.path(), true);
        assert!(!leftover.exists());
        assert!(owner_dir.find(&OLD.parse().unwrap(), None).unwrap().is_some());
        fs::remove_file(owner_dir.image_dir(&OLD.parse().unwrap()).join(MARKER)).unwrap();
        assert!(owner_dir.find(&OLD.parse().unwrap(), None).unwrap().is_none());
        assert!(!owner_dir.image_dir(&OLD.parse().unwrap()).exists());
    }

    #[test]
    fn unsynced_content_is_discarded_by_the_next_process() {
        let cache = tempfile::tempdir().unwrap();
        let owner_dir = OwnerDir::new(cache.path(), "owner", false).unwrap();
        publish(&owner_dir, OLD);
        assert!(owner_dir.find(&OLD.parse().unwrap(), None).unwrap().is_some());
        remove_leftovers(cache.path(), false);
        assert!(owner_dir.find(&OLD.parse().unwrap(), None).unwrap().is_none());
    }
}
