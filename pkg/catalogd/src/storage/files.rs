//! Files that are written once: digested while they are written, synced before they become visible.

use std::{
    fs::{self, File},
    io::{self, BufWriter, IoSliceMut, Write},
    os::unix::fs::FileExt,
    path::Path,
};

use data_encoding::HEXLOWER;
use rustix::io::{Errno, ReadWriteFlags};

use sha2::{Digest, Sha256};

use super::{StorageError, manifest::FileInfo};
use crate::disk::{self, Output};

/// Blocking behaviour of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// Waits for the disk; must not run on a reactor thread.
    Blocking,
    /// Fails for data outside the page cache, and on file systems that do not support `RWF_NOWAIT`.
    CachedOnly,
}

/// Fills `bytes` from an offset of a file.
pub(super) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64, mode: ReadMode) -> io::Result<()> {
    if mode == ReadMode::Blocking {
        return file.read_exact_at(bytes, offset);
    }
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let at = offset.saturating_add(filled as u64);
        match rustix::io::preadv2(file, &mut [IoSliceMut::new(rest)], at, ReadWriteFlags::NOWAIT) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Writer that counts and digests the bytes it passes on.
pub(super) struct DigestWriter<W> {
    inner: W,
    hash: Sha256,
    size: u64,
}

impl<W: Write> DigestWriter<W> {
    pub(super) fn new(inner: W) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
            size: 0,
        }
    }

    pub(super) fn get_ref(&self) -> &W {
        &self.inner
    }

    pub(super) fn finish(self) -> (W, FileInfo) {
        let sha256 = HEXLOWER.encode(&self.hash.finalize());
        (
            self.inner,
            FileInfo {
                size: self.size,
                sha256,
            },
        )
    }
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hash.update(buffer.get(..written).unwrap_or_default());
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Size of a file's buffer in bytes. Pieces of this size go to the file without a copy.
pub(super) const BUFFER: usize = 64 * 1024;

/// Creates a file with a buffer and a digest.
pub(super) fn create(path: &Path) -> Result<DigestWriter<BufWriter<Output>>, StorageError> {
    let file = Output::create_new(path).map_err(StorageError::io("create", path))?;
    Ok(DigestWriter::new(BufWriter::with_capacity(BUFFER, file)))
}

/// Flushes and syncs a file from [`create`].
pub(super) fn finish_synced(
    file: DigestWriter<BufWriter<Output>>,
    path: &Path,
) -> Result<FileInfo, StorageError> {
    let (buffered, info) = file.finish();
    let file = buffered
        .into_inner()
        .map_err(|error| StorageError::io("write", path)(error.into_error()))?;
    file.sync().map_err(StorageError::io("sync", path))?;
    Ok(info)
}

/// Replaces a small file by a rename.
pub(super) fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let write = || {
        let mut file = Output::create(temporary)?;
        file.write_all(bytes)?;
        file.sync()?;
        disk::rename(temporary, path)
    };
    write().map_err(StorageError::io("write", path))
}

/// Syncs a folder, so that renames and new entries are durable.
pub(super) fn sync_folder(path: &Path) -> Result<(), StorageError> {
    disk::sync_folder(path).map_err(StorageError::io("sync", path))
}

/// Returns the current size and digest of an open file. Calls `progress` with the size of each read; false interrupts.
pub(super) fn digest_file(
    file: &File,
    path: &Path,
    progress: &dyn Fn(u64) -> bool,
) -> Result<FileInfo, StorageError> {
    let mut writer = DigestWriter::new(io::sink());
    let (mut buffer, mut offset) = (vec![0; 128 * 1024], 0);
    loop {
        let read = match file.read_at(&mut buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(StorageError::io("read", path))?,
        };
        if read == 0 {
            return Ok(writer.finish().1);
        }
        writer
            .write_all(buffer.get(..read).unwrap_or_default())
            .map_err(StorageError::io("read", path))?;
        offset += read as u64;
        if !progress(read as u64) {
            return Err(StorageError::Interrupted);
        }
    }
}

/// Removes a file or folder, if it exists.
pub(super) fn remove(path: &Path) -> Result<(), StorageError> {
    let gone = |error: io::Error| {
        if error.kind() == io::ErrorKind::NotFound {
            Ok(())
        } else {
            Err(error)
        }
    };
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => disk::remove_dir_all(path),
        Ok(_) => disk::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(gone).map_err(StorageError::io("remove", path))
}
