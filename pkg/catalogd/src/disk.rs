//! System calls by which the store changes the disk. `tests/generations` compiles the store with calls that are recorded, cut off and
//! refused.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::DirBuilderExt,
    path::Path,
};

pub(crate) use std::{
    fs::{remove_dir_all, remove_file, rename},
    os::unix::fs::symlink,
};

/// Number of bytes after which a large file is synced while it is still being written.
pub(crate) const SYNC_EVERY: u64 = 8 * 1024 * 1024;

/// File that is being written.
pub(crate) struct Output(File);

impl Output {
    /// Creates a file that must not exist yet.
    pub(crate) fn create_new(path: &Path) -> io::Result<Self> {
        File::create_new(path).map(Self)
    }

    /// Creates a file, or empties an existing one.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        File::create(path).map(Self)
    }

    /// Returns another handle of the file.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    /// Waits until the bytes that the file has now are on disk. The kernel reports a failure once for all handles: after an error, a
    /// later success of [`Output::sync`] means nothing.
    pub(crate) fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    /// Waits until the file's bytes are on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

impl Write for Output {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Creates a folder that only its owner may enter, and the folders above it. Existing folders stay as they are.
pub(crate) fn create_folders(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Waits until the entries of a folder are on disk.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
