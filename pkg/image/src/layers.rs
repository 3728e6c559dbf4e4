//! Layers of an image on disk: transferred and verified, not unpacked.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Instant, SystemTime},
};

use olm_runtime::locks::LockGuard;
use tempfile::TempDir;
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    cache::{CachedImage, Marker, OwnerDir, ROOT},
    error::Error,
    limits::Limits,
    puller::{Unpacked, blocking, unpacked},
    reference::{CanonicalRef, Digest},
    slots::PullSlots,
    unpack::{Budget, CancelGuard, StreamEntry, StreamError, Unpacker, each_file},
};

/// Verified layers in a temporary directory, which goes with this value.
pub(crate) struct Transferred {
    pub(crate) temporary: TempDir,
    /// File and compressed size of each layer, lowest first.
    pub(crate) layers: Vec<(PathBuf, u64)>,
    pub(crate) owner_dir: OwnerDir,
    pub(crate) digest: Digest,
    pub(crate) labels: BTreeMap<String, String>,
    /// Label that selects the content, and the components of the directory that it names.
    pub(crate) filter: Option<(&'static str, Vec<OsString>)>,
    /// Fingerprint of the signature policy that accepted the image.
    pub(crate) policy: Option<String>,
    pub(crate) limits: Limits,
}

impl Transferred {
    /// Unpacks the layers into the cache. Blocks on the disk.
    pub(crate) fn unpack(self, budget: Budget) -> Result<CachedImage, Error> {
        let content = self.temporary.path().join("content");
        let root = content.join(ROOT);
        fs::create_dir_all(&root).map_err(|source| Error::Cache {
            action: "write to",
            path: root.clone(),
            source,
        })?;
        let mut unpacker = Unpacker::new(root.clone(), self.below().to_vec(), self.limits, budget);
        for (layer, (path, size)) in self.layers.into_iter().enumerate() {
            let file = File::open(&path).map_err(|source| Error::Cache {
                action: "read",
                path: path.clone(),
                source,
            })?;
            unpacker
                .apply(file, size)
                .map_err(|source| Error::Unpack { layer, source })?;
        }
        let filter = self
            .filter
            .map(|(label, parts)| {
                let directory: PathBuf = parts.iter().collect();
                let shown = directory.display().to_string();
                // The directory itself must not be a link to another part of the image.
                if real_directory(&root, &parts) {
                    Ok((label.to_owned(), shown))
                } else {
                    Err(Error::LabelDirectory {
                        label,
                        directory: shown,
                    })
                }
            })
            .transpose()?;
        let marker = Marker::new(self.labels, filter, self.policy);
        self.owner_dir.publish(&content, &self.digest, marker)
    }

    /// Returns the components of the selected directory.
    fn below(&self) -> &[OsString] {
        self.filter.as_ref().map_or(&[], |(_, parts)| parts)
    }
}

/// Returns true if these parts lead to a directory without following a link.
fn real_directory(root: &Path, parts: &[OsString]) -> bool {
    let mut path = root.to_owned();
    parts.iter().all(|part| {
        path.push(part);
        fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir())
    })
}

/// Verified layers of an image, which can be read without unpacking them. The owner's content is locked; dropping this value removes the
/// layers and blocks on the disk.
pub struct Layers {
    transferred: Transferred,
    reference: CanonicalRef,
    verified: Option<String>,
    transferred_at: SystemTime,
    slots: Arc<PullSlots>,
    lock: LockGuard<String>,
}

/// Permission to read layers, with the limits of one reading.
#[derive(Debug)]
pub struct Reading {
    budget: Budget,
    _slot: OwnedSemaphorePermit,
}

impl Reading {
    /// Returns a guard that ends the reading when it is dropped.
    pub fn guard(&self) -> CancelGuard {
        self.budget.guard()
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layers")
            .field("reference", &self.reference)
            .finish_non_exhaustive()
    }
}

impl Layers {
    pub(crate) fn new(
        transferred: Transferred,
        reference: CanonicalRef,
        verified: Option<String>,
        slots: Arc<PullSlots>,
        lock: LockGuard<String>,
    ) -> Self {
        Self {
            transferred,
            reference,
            verified,
            transferred_at: SystemTime::now(),
            slots,
            lock,
        }
    }

    /// Returns the time at which the last layer was transferred.
    pub fn transferred_at(&self) -> SystemTime {
        self.transferred_at
    }

    /// Returns the fingerprint of the signature policy whose signatures were verified; `None` if it required none.
    pub fn verified(&self) -> Option<&str> {
        self.verified.as_deref()
    }

    /// Waits until the layers may be read.
    ///
    /// # Errors
    /// The process is shutting down.
    pub async fn begin(&self) -> Result<Reading, Error> {
        let slot = self.slots.unpack().await?;
        Ok(Reading {
            budget: Budget::until(Instant::now() + self.transferred.limits.pull),
            _slot: slot,
        })
    }

    /// Calls `visit` with the selected entries in the order of the layers. Blocks on the disk. What was visited counts only if there is no
    /// error: [`Layers::unpack`] shows what the image holds in any case.
    ///
    /// # Errors
    /// The layers need to be unpacked, or are faulty, or the visitor failed.
    pub fn each<E>(
        &self,
        reading: &Reading,
        visit: &mut dyn FnMut(StreamEntry<'_>) -> Result<(), E>,
    ) -> Result<(), StreamError<E>> {
        let Transferred { layers, limits, .. } = &self.transferred;
        each_file(layers, self.transferred.below(), limits, &reading.budget, visit)
    }

    /// Unpacks the layers into the cache, like [`crate::Puller::fetch_as`].
    ///
    /// # Errors
    /// See [`Error`]; the former content stays.
    pub async fn unpack(self) -> Result<Unpacked, Error> {
        let owner_dir = self.transferred.owner_dir.clone();
        let reading = self.begin().await?;
        // Stops the thread when this future is dropped.
        let _guard = reading.guard();
        let Self {
            transferred,
            reference,
            verified,
            lock,
            ..
        } = self;
        let (cached, _lock) = blocking(move || {
            // The slot and the owner's lock are held until the thread ends, even if this future is dropped before.
            let reading = reading;
            let cached = transferred.unpack(reading.budget.clone())?;
            Ok((cached, lock))
        })
        .await?;
        unpacked(owner_dir, cached, &reference, verified).await
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, time::Duration};

    use futures::FutureExt as _;
    use olm_runtime::locks::Locks;

    use super::*;
    use crate::limits::PullLimits;

    const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    /// Returns layers whose first one is a pipe: its reader waits for a writer.
    fn layers(cache: &Path, slots: Arc<PullSlots>, lock: LockGuard<String>) -> (Layers, Writer) {
        let owner_dir = OwnerDir::new(cache, "a", false).unwrap();
        let temporary = owner_dir.temporary().unwrap();
        let pipe = temporary.path().join("layer-0");
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let transferred = Transferred {
            temporary,
            layers: vec![(pipe.clone(), 1024)],
            owner_dir,
            digest: DIGEST.parse().unwrap(),
            labels: BTreeMap::new(),
            filter: None,
            policy: None,
            limits: Limits::default(),
        };
        let reference = format!("registry.example/a@{DIGEST}").parse().unwrap();
        (
            Layers::new(transferred, reference, None, slots, lock),
            Writer(pipe),
        )
    }

    /// Ends the wait of a reader of a pipe when it is dropped, also by a failed assertion: the runtime waits for its threads.
    struct Writer(PathBuf);

    impl Drop for Writer {
        fn drop(&mut self) {
            let mut pipe = File::options().read(true).write(true).open(&self.0).unwrap();
            pipe.write_all(&[0; 1024]).unwrap();
            // The reader may open the pipe later.
            std::mem::forget(pipe);
        }
    }

    #[tokio::test]
    async fn the_slot_and_the_lock_are_held_until_the_thread_ends() {
        let cache = tempfile::tempdir().unwrap();
        let (slots, owners) = (Arc::new(PullSlots::new(PullLimits::default())), Locks::default());
        let (layers, writer) = layers(cache.path(), slots.clone(), owners.lock("a").await);
        let mut unpacking = Box::pin(layers.unpack());
        assert!(unpacking.as_mut().now_or_never().is_none());
        drop(unpacking);
        let _other = slots.unpack().await.unwrap();
        for _ in 0..10 {
            assert!(slots.unpack().now_or_never().is_none(), "the slot is free");
            assert!(owners.lock("a").now_or_never().is_none(), "the lock is free");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(writer);
        let (_slot, _lock) = tokio::join!(slots.unpack(), owners.lock("a"));
    }
}
