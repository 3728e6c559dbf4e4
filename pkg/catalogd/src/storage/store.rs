//! Store of the content of all catalogs.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    num::NonZero,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use tokio::sync::{OwnedMutexGuard, watch};

use super::{
    Generation, Limits, Manifest, Origin, Source, StorageError, ValidCatalogName, files,
    generation::{MANIFEST, generation_name},
    source::Folder,
    write,
};
use crate::{
    disk,
    sync::{Mutex, RwLock},
};

/// Symlink to the served generation.
const CURRENT: &str = "current";
/// New symlink before its rename to [`CURRENT`].
const NEXT: &str = ".next";
/// Folder that is being written.
const TEMPORARY: &str = ".tmp";

/// Content on disk below one folder. All methods except [`Store::get`] block on the disk.
///
/// Writers of a catalog's content hold its [`Store::lock`].
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    limits: Limits,
    serving: RwLock<HashMap<ValidCatalogName, Arc<Generation>>>,
    locks: Mutex<HashMap<ValidCatalogName, Arc<tokio::sync::Mutex<()>>>>,
    /// Damages that the controller has not reported yet.
    damages: watch::Sender<BTreeMap<ValidCatalogName, String>>,
}

impl Store {
    /// Opens the content below `root`, verifies it and serves it again. Removes damaged content and leftovers of a
    /// crash.
    ///
    /// # Errors
    /// `root` cannot be created or read.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, StorageError> {
        let root = root.into();
        disk::create_folders(&root).map_err(StorageError::io("create", &root))?;
        let store = Self {
            root,
            limits: Limits::default(),
            serving: RwLock::default(),
            locks: Mutex::default(),
            damages: watch::Sender::default(),
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(&store.root).map_err(StorageError::io("read", &store.root))? {
            let entry = entry.map_err(StorageError::io("read", &store.root))?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            match entry
                .file_name()
                .into_string()
                .ok()
                .and_then(|name| ValidCatalogName::new(name).ok())
            {
                Some(name) if is_folder => names.push(name),
                _ => discard(&entry.path()),
            }
        }
        store.recover_all(names);
        Ok(store)
    }

    /// Sets the limits on catalogs.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Recovers catalogs concurrently, since verification digests all their content.
    fn recover_all(&self, names: Vec<ValidCatalogName>) {
        let threads = thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(names.len());
        let names = Mutex::new(names.into_iter());
        let recover = || {
            // The lock must not be held while a catalog is recovered.
            let next = || names.lock().next();
            while let Some(name) = next() {
                self.recover(name);
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                // Without another thread, recovery only takes longer.
                let _ = thread::Builder::new().spawn_scoped(scope, recover);
            }
            recover();
        });
    }

    fn recover(&self, name: ValidCatalogName) {
        let opened = self
            .open_current(&name)
            .and_then(|generation| generation.verify(&|_| true).map(|()| generation));
        match opened {
            Ok(generation) => {
                self.remove_others(&name, Some(generation.path()));
                tracing::info!(catalog = %name, digest = generation.manifest().digest, "serving recovered content");
                self.serving.write().insert(name, Arc::new(generation));
            }
            Err(error) => {
                let error = olm_text::chain(&error);
                tracing::warn!(catalog = %name, error, "removing content of a former run: it cannot be used");
                discard(&self.folder(&name));
            }
        }
    }

    /// Returns the served content of a catalog.
    pub fn get(&self, name: &ValidCatalogName) -> Option<Arc<Generation>> {
        self.serving.read().get(name).cloned()
    }

    /// Returns the served content of all catalogs by name.
    pub fn serving(&self) -> BTreeMap<ValidCatalogName, Arc<Generation>> {
        let serving = self.serving.read();
        serving
            .iter()
            .map(|(name, generation)| (name.clone(), generation.clone()))
            .collect()
    }

    /// Waits for the lock that writers of a catalog's content hold.
    pub async fn lock(&self, name: &ValidCatalogName) -> OwnedMutexGuard<()> {
        self.lock_of(name).lock_owned().await
    }

    /// Returns the lock of a catalog's content if it is free.
    pub fn try_lock(&self, name: &ValidCatalogName) -> Option<OwnedMutexGuard<()>> {
        self.lock_of(name).try_lock_owned().ok()
    }

    /// Returns the lock of a catalog's content, and forgets those that nobody holds or waits for.
    fn lock_of(&self, name: &ValidCatalogName) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.locks.lock();
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        locks.entry(name.clone()).or_default().clone()
    }

    /// Reads the unpacked catalog below `source`, stores it and serves it. The former content stays after an error.
    /// `now` is in seconds since the Unix epoch.
    ///
    /// # Errors
    /// The catalog is invalid or the disk fails.
    pub fn store(
        &self,
        name: &ValidCatalogName,
        source: &Path,
        origin: Origin,
        now: i64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Arc<Generation>, StorageError> {
        self.store_from(name, &mut Folder(source), origin, now, interrupted)
    }

    /// Stores the catalog whose files `source` has, like [`Store::store`].
    ///
    /// # Errors
    /// The catalog is invalid, or the source or the disk fails.
    pub fn store_from(
        &self,
        name: &ValidCatalogName,
        source: &mut dyn Source,
        origin: Origin,
        now: i64,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Arc<Generation>, StorageError> {
        let folder = self.folder(name);
        disk::create_folders(&folder).map_err(StorageError::io("create", &folder))?;
        let former = self.get(name);
        self.remove_others(name, former.as_ref().map(|generation| generation.path()));
        let temporary = folder.join(unused_name(&folder, TEMPORARY));
        let target = folder.join(unused_name(&folder, &generation_name(&origin)));
        disk::create_folders(&temporary).map_err(StorageError::io("create", &temporary))?;
        // Unchanged content keeps its age, so that clients' copies stay valid. Other content is later than the former by HTTP's unit,
        // a second, also if the clock was set back: a client may compare nothing but the time.
        let stored_at = |digest: &str| match former.as_ref().map(|former| former.manifest()) {
            Some(former) if former.digest == digest => former.stored_at,
            Some(former) => now.max(former.stored_at.saturating_add(1)),
            None => now,
        };
        write::write(source, &temporary, &self.limits, origin, stored_at, interrupted)
            .and_then(|_| disk::rename(&temporary, &target).map_err(StorageError::io("create", &target)))
            .inspect_err(|_| discard(&temporary))?;
        self.publish(name, &target)
    }

    /// Records that another reference resolves to the stored content, too.
    ///
    /// # Errors
    /// The catalog has no stored content or the disk fails.
    pub fn set_origin(
        &self,
        name: &ValidCatalogName,
        origin: Origin,
    ) -> Result<Arc<Generation>, StorageError> {
        let Some(generation) = self.get(name) else {
            return Err(StorageError::Damaged {
                path: self.folder(name),
                what: "nothing is stored",
            });
        };
        let manifest = Manifest {
            origin,
            ..generation.manifest().clone()
        };
        let path = generation.path();
        files::replace(
            &path.join(MANIFEST),
            &path.join(".manifest"),
            &manifest.to_bytes(),
        )?;
        files::sync_folder(path)?;
        let generation = Arc::new(Generation::open(path)?);
        self.serving.write().insert(name.clone(), generation.clone());
        Ok(generation)
    }

    /// Stops serving a catalog and removes its content, if there is any.
    ///
    /// # Errors
    /// The disk fails; the content is nevertheless no longer served.
    pub fn remove(&self, name: &ValidCatalogName) -> Result<(), StorageError> {
        self.serving.write().remove(name);
        let folder = self.folder(name);
        // Without the symlink, a partly removed folder is not mistaken for content after a crash.
        files::remove(&folder.join(CURRENT))?;
        files::remove(&folder)
    }

    /// Stops serving a damaged generation and removes it. Returns false without effect if other content is served by
    /// now.
    pub fn discard_damaged(
        &self,
        name: &ValidCatalogName,
        generation: &Arc<Generation>,
        why: &StorageError,
    ) -> bool {
        if !self
            .get(name)
            .is_some_and(|served| Arc::ptr_eq(&served, generation))
        {
            return false;
        }
        if let Err(error) = self.remove(name) {
            let error = olm_text::chain(&error);
            tracing::warn!(catalog = %name, error, "could not remove damaged content, which is no longer served");
        }
        let why = olm_text::chain(why);
        self.damages.send_modify(|damages| {
            damages.insert(name.clone(), why);
        });
        true
    }

    /// Returns a receiver that changes when content is discarded as damaged.
    pub fn damages(&self) -> watch::Receiver<BTreeMap<ValidCatalogName, String>> {
        self.damages.subscribe()
    }

    /// Takes the description of a damage, once.
    pub fn take_damage(&self, name: &ValidCatalogName) -> Option<String> {
        let mut taken = None;
        self.damages.send_if_modified(|damages| {
            taken = damages.remove(name);
            false
        });
        taken
    }

    /// Returns the catalogs that have a folder.
    ///
    /// # Errors
    /// The root folder cannot be read.
    pub fn names(&self) -> Result<Vec<ValidCatalogName>, StorageError> {
        let entries = fs::read_dir(&self.root).map_err(StorageError::io("read", &self.root))?;
        let mut names: Vec<_> = entries
            .filter_map(|entry| ValidCatalogName::new(entry.ok()?.file_name().into_string().ok()?).ok())
            .collect();
        names.sort();
        Ok(names)
    }

    fn folder(&self, name: &ValidCatalogName) -> PathBuf {
        self.root.join(name.as_str())
    }

    fn open_current(&self, name: &ValidCatalogName) -> Result<Generation, StorageError> {
        let folder = self.folder(name);
        let current = folder.join(CURRENT);
        let target = fs::read_link(&current).map_err(StorageError::io("read", &current))?;
        let mut parts = target.components();
        let (Some(std::path::Component::Normal(target_name)), None) = (parts.next(), parts.next()) else {
            return Err(StorageError::Damaged {
                path: current,
                what: "it points outside of its folder",
            });
        };
        Generation::open(&folder.join(target_name))
    }

    /// Points the symlink to a complete generation and removes the former ones.
    fn publish(&self, name: &ValidCatalogName, target: &Path) -> Result<Arc<Generation>, StorageError> {
        let folder = self.folder(name);
        let generation = Arc::new(Generation::open(target)?);
        let (next, current) = (folder.join(NEXT), folder.join(CURRENT));
        files::remove(&next)?;
        // The symlink must not survive a crash that the generation's folder does not survive.
        files::sync_folder(&folder)?;
        let target_name = target.file_name().unwrap_or_default();
        disk::symlink(target_name, &next).map_err(StorageError::io("create", &next))?;
        disk::rename(&next, &current).map_err(StorageError::io("replace", &current))?;
        files::sync_folder(&folder)?;
        files::sync_folder(&self.root)?;
        self.serving.write().insert(name.clone(), generation.clone());
        // Damage of former content is obsolete.
        self.take_damage(name);
        self.remove_others(name, Some(target));
        Ok(generation)
    }

    /// Removes all entries except a generation, the symlink and its target, or all entries without a generation. Failed removals are
    /// retried next time.
    fn remove_others(&self, name: &ValidCatalogName, keep: Option<&Path>) {
        let folder = self.folder(name);
        let Ok(entries) = fs::read_dir(&folder) else {
            return;
        };
        // A publication that failed halfway leaves a symlink to content that is not served. A restart serves it.
        let current = folder.join(CURRENT);
        let target = fs::read_link(&current).map(|target| folder.join(target)).ok();
        for entry in entries.flatten() {
            let path = entry.path();
            let kept = [keep, Some(&current), target.as_deref()].contains(&Some(&path));
            if keep.is_none() || !kept {
                discard(&path);
            }
        }
    }
}

/// Returns a name that the folder does not have: `base`, with a number behind a dot if it exists.
fn unused_name(folder: &Path, base: &str) -> String {
    let mut name = base.to_owned();
    let mut number = 1;
    while folder.join(&name).symlink_metadata().is_ok() {
        name = format!("{base}.{number}");
        number += 1;
    }
    name
}

fn discard(path: &Path) {
    if let Err(error) = files::remove(path) {
        let error = olm_text::chain(&error);
        tracing::warn!(error, "could not remove a leftover");
    }
}

#[cfg(test)]
mod tests {
    use super::{Store, ValidCatalogName};

    #[tokio::test]
    async fn locks_that_nobody_holds_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let name = |name: &str| ValidCatalogName::new(name).unwrap();
        let held = store.lock(&name("held")).await;
        for other in ["a", "b", "c"] {
            drop(store.lock(&name(other)).await);
        }
        assert!(store.try_lock(&name("held")).is_none());
        assert_eq!(store.locks.lock().len(), 1);
        drop(held);
        assert!(store.try_lock(&name("held")).is_some());
    }
}
