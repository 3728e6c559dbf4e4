//! Scratch directories that are removed with their owner.
//!
//! Each has a locked file while its owner lives. A killed owner cannot clean up, so the creation of the next
//! directory removes unlocked ones. Directories that are kept on purpose stay for a week.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};

const LOCK: &str = ".lock";
const KEPT: &str = ".kept";
const KEPT_FOR: Duration = Duration::from_hours(7 * 24);

/// A directory of one owner, removed on drop unless the thread panics or [`Scratch::keep`] was called.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    keep: bool,
    drop_when_kept: Vec<PathBuf>,
    _lock: File,
}

impl Scratch {
    /// Creates an empty directory whose name starts with `name`.
    ///
    /// # Errors
    /// The temporary directory is not writable.
    pub fn new(name: &str) -> Result<Self> {
        let base = base()?;
        sweep(&base);
        let path = tempfile::Builder::new()
            .prefix(&format!("{name}-"))
            .tempdir_in(&base)
            .with_context(|| format!("cannot make a scratch directory in {}", base.display()))?
            .keep();
        let lock_path = path.join(LOCK);
        let lock =
            File::create(&lock_path).with_context(|| format!("cannot create {}", lock_path.display()))?;
        lock.lock()
            .with_context(|| format!("cannot lock {}", lock_path.display()))?;
        let keep = std::env::var_os("OLM_KEEP_LOGS").is_some();
        Ok(Self {
            path,
            keep,
            drop_when_kept: Vec::new(),
            _lock: lock,
        })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a subdirectory if needed and returns its path.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn dir(&self, name: &str) -> Result<PathBuf> {
        let dir = self.path.join(name);
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        Ok(dir)
    }

    /// Variant of [`Scratch::dir`] for large data that is useless after a failure: removed even if logs are kept.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn bulky_dir(&mut self, name: &str) -> Result<PathBuf> {
        let dir = self.dir(name)?;
        self.drop_when_kept.push(dir.clone());
        Ok(dir)
    }

    /// Keeps the directory after the drop.
    pub fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.keep && !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.path);
            return;
        }
        for dir in &self.drop_when_kept {
            let _ = fs::remove_dir_all(dir);
        }
        let _ = fs::write(self.path.join(KEPT), "");
        eprintln!("logs kept in {}", self.path.display());
    }
}

/// Returns the directory of all scratch directories of this user's runs.
///
/// # Errors
/// The directory cannot be created.
pub fn base() -> Result<PathBuf> {
    let base = std::env::temp_dir().join("olm-harness");
    fs::create_dir_all(&base).with_context(|| format!("cannot create {}", base.display()))?;
    Ok(base)
}

fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let dir = entry.path();
        if abandoned(&dir) {
            let _ = fs::remove_dir_all(&dir);
        }
    }
}

fn abandoned(dir: &Path) -> bool {
    // A foreign directory, or one under creation.
    let Ok(lock) = File::open(dir.join(LOCK)) else {
        return false;
    };
    if let Err(TryLockError::WouldBlock | TryLockError::Error(_)) = lock.try_lock() {
        return false;
    }
    // A new directory that is not locked yet.
    if age(&dir.join(LOCK)) < Duration::from_mins(1) {
        return false;
    }
    !dir.join(KEPT).exists() || age(&dir.join(KEPT)) > KEPT_FOR
}

fn age(file: &Path) -> Duration {
    let changed = fs::metadata(file).and_then(|meta| meta.modified());
    changed
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok())
        .unwrap_or_default()
}
