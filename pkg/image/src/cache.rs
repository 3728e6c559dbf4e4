//! The unpacked images on disk: `unpack/<owner>/<digest>/`, each complete or not there.
//!
//! A digest's directory holds `rootfs` and, written last, `image.json` with the image's labels.
//! It is made beside its place as `.tmp-*` and moved there in one step once it is on disk.
//! Content survives a restart, unless it is only passed on ([`crate::ImageConfig::durable`]).

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io::{self, Read as _},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    time::SystemTime,
};

use olm_text::dns::is_subdomain;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::{error::Error, reference::Digest};

/// Begins the name of a directory in the making.
const TEMPORARY: &str = ".tmp-";
/// The image's content.
pub(crate) const ROOT: &str = "rootfs";
/// What is known of the image; its presence says that the directory is complete.
const MARKER: &str = "image.json";
/// Larger markers are not ours.
const MARKER_BYTES: u64 = 16 * 1024 * 1024;

/// What is remembered of an unpacked image.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    pub(crate) labels: BTreeMap<String, String>,
    /// The label that the content was filtered by, and the directory it named.
    pub(crate) filter: Option<(String, String)>,
    /// The signature policy's requirements that it was accepted under; `None` when there was no policy.
    #[serde(default)]
    pub(crate) policy: Option<String>,
}

/// A complete image in the cache.
#[derive(Debug)]
pub(crate) struct Cached {
    pub(crate) root: PathBuf,
    pub(crate) marker: Marker,
    pub(crate) unpacked_at: SystemTime,
}

/// The directory of one owner.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    directory: PathBuf,
    /// Whether content has to be on disk before it counts.
    durable: bool,
}

impl Shelf {
    /// The shelf of an owner, whose name is checked first: it becomes a path.
    pub(crate) fn of(cache: &Path, owner: &str, durable: bool) -> Result<Self, Error> {
        if !is_subdomain(owner) {
            return Err(Error::Owner(owner.to_owned()));
        }
        Ok(Self {
            directory: cache.join("unpack").join(owner),
            durable,
        })
    }

    fn place(&self, digest: &Digest) -> PathBuf {
        self.directory.join(digest.to_string())
    }

    /// The image with a digest when it is complete and was filtered by this label.
    pub(crate) fn find(&self, digest: &Digest, filter: Option<&str>) -> Result<Option<Cached>, Error> {
        let place = self.place(digest);
        let found = match fs::symlink_metadata(&place) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(Error::Cache {
                    action: "look at",
                    path: place,
                    source,
                });
            }
        };
        let root = place.join(ROOT);
        let marker = read_capped_blocking(&place.join(MARKER), MARKER_BYTES)
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Marker>(&bytes).ok())
            .filter(|marker| marker.filter.as_ref().map(|(label, _)| label.as_str()) == filter);
        if let Some(marker) = marker
            && root.is_dir()
        {
            let unpacked_at = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            return Ok(Some(Cached {
                root,
                marker,
                unpacked_at,
            }));
        }
        tracing::info!(path = %place.display(), "incomplete or other content is replaced");
        remove(&place)?;
        Ok(None)
    }

    /// A place to unpack into, on the same file system.
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

    /// Moves an unpacked image into place, with `marker`; all of it is on disk before, where that matters.
    pub(crate) fn publish(&self, content: &Path, digest: &Digest, marker: &Marker) -> Result<Cached, Error> {
        let place = self.place(digest);
        let failed = |action| {
            let path = place.clone();
            move |source| Error::Cache { action, path, source }
        };
        let text = serde_json::to_vec(marker).map_err(|error| failed("describe")(error.into()))?;
        fs::write(content.join(MARKER), text).map_err(failed("write to"))?;
        if self.durable {
            let directory = File::open(content).map_err(failed("write to"))?;
            // One call for the tree: thousands of small files are slow to sync one by one.
            rustix::fs::syncfs(&directory).map_err(|error| failed("sync")(error.into()))?;
        }
        remove(&place)?;
        fs::rename(content, &place).map_err(failed("move content to"))?;
        if self.durable {
            File::open(&self.directory)
                .and_then(|directory| directory.sync_all())
                .map_err(failed("sync"))?;
        }
        self.find(digest, marker.filter.as_ref().map(|(label, _)| label.as_str()))?
            .ok_or_else(|| failed("find")(io::ErrorKind::NotFound.into()))
    }

    /// Removes all but one digest. What cannot be removed now is met again next time.
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

    /// Removes all content.
    pub(crate) fn clear(&self) -> Result<(), Error> {
        remove(&self.directory)
    }
}

/// Removes what interrupted pulls left behind; and everything where content was not synced, since a marker may then
/// be on disk without what it marks.
pub(crate) fn sweep(cache: &Path, durable: bool) {
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
            tracing::warn!(error = error.message(), "leftover of an interrupted pull stays");
        }
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
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

/// A small file's bytes; a larger one is an error.
fn read_capped_blocking(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the file is too large",
        ));
    }
    Ok(bytes)
}

/// [`read_capped_blocking`] off the async threads.
pub(crate) async fn read_capped(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || read_capped_blocking(&path, limit))
        .await
        .map_err(io::Error::other)?
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
            assert!(Shelf::of(cache, good, true).is_ok(), "{good}");
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
            assert!(Shelf::of(cache, bad, true).is_err(), "{bad}");
        }
    }

    fn publish(shelf: &Shelf, digest: &str) -> Cached {
        let temporary = shelf.temporary().unwrap();
        let content = temporary.path().join("content");
        fs::create_dir_all(content.join(ROOT)).unwrap();
        let marker = Marker {
            labels: BTreeMap::new(),
            filter: None,
            policy: None,
        };
        shelf
            .publish(&content, &digest.parse().unwrap(), &marker)
            .unwrap()
    }

    #[test]
    fn publishes_whole_and_keeps_one() {
        let cache = tempfile::tempdir().unwrap();
        let shelf = Shelf::of(cache.path(), "owner", true).unwrap();
        publish(&shelf, OLD);
        let cached = publish(&shelf, NEW);
        assert_eq!(
            cached.root,
            cache.path().join("unpack/owner").join(NEW).join(ROOT)
        );
        shelf.keep_only(&NEW.parse().unwrap());
        assert!(shelf.find(&OLD.parse().unwrap(), None).unwrap().is_none());
        let again = shelf.find(&NEW.parse().unwrap(), None).unwrap().unwrap();
        assert_eq!(again.unpacked_at, cached.unpacked_at);
        // Another filter makes other content.
        assert!(
            shelf
                .find(&NEW.parse().unwrap(), Some("label"))
                .unwrap()
                .is_none()
        );
        assert!(shelf.find(&NEW.parse().unwrap(), None).unwrap().is_none());
        shelf.clear().unwrap();
        shelf.clear().unwrap();
    }

    #[test]
    fn leftovers_and_incomplete_content_go() {
        let cache = tempfile::tempdir().unwrap();
        let shelf = Shelf::of(cache.path(), "owner", true).unwrap();
        let leftover = shelf.temporary().unwrap().keep();
        publish(&shelf, OLD);
        sweep(cache.path(), true);
        assert!(!leftover.exists());
        assert!(shelf.find(&OLD.parse().unwrap(), None).unwrap().is_some());
        fs::remove_file(shelf.place(&OLD.parse().unwrap()).join(MARKER)).unwrap();
        assert!(shelf.find(&OLD.parse().unwrap(), None).unwrap().is_none());
        assert!(!shelf.place(&OLD.parse().unwrap()).exists());
    }

    #[test]
    fn what_was_not_synced_is_not_believed_by_the_next_process() {
        let cache = tempfile::tempdir().unwrap();
        let shelf = Shelf::of(cache.path(), "owner", false).unwrap();
        publish(&shelf, OLD);
        assert!(shelf.find(&OLD.parse().unwrap(), None).unwrap().is_some());
        sweep(cache.path(), false);
        assert!(shelf.find(&OLD.parse().unwrap(), None).unwrap().is_none());
    }
}
