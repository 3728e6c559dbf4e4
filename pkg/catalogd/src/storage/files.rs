//! Files that are written once: digested while written, synced before they count.

use std::{
    fs::{self, File},
    io::{self, BufWriter, IoSliceMut, Write},
    os::unix::fs::FileExt,
    path::Path,
};

use rustix::io::{Errno, ReadWriteFlags};

use sha2::{Digest, Sha256};

use super::{StorageError, manifest::FileInfo};

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// As long as it takes; not on a thread of the reactor.
    ForDisk,
    /// What is not in the page cache is an error, as is everything on file systems that cannot tell.
    Never,
}

/// Fills `bytes` from a place of a file.
pub(super) fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64, wait: Wait) -> io::Result<()> {
    if wait == Wait::ForDisk {
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

/// Counts and digests what passes through it.
pub(super) struct Digesting<W> {
    inner: W,
    hash: Sha256,
    size: u64,
}

impl<W: Write> Digesting<W> {
    pub(super) fn new(inner: W) -> Self {
        Self {
            inner,
            hash: Sha256::new(),
            size: 0,
        }
    }

    pub(super) fn finish(self) -> (W, FileInfo) {
        let sha256 = hex(&self.hash.finalize());
        (
            self.inner,
            FileInfo {
                size: self.size,
                sha256,
            },
        )
    }
}

impl<W: Write> Write for Digesting<W> {
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

/// A new file, buffered and digested.
pub(super) fn create(path: &Path) -> Result<Digesting<BufWriter<File>>, StorageError> {
    let file = File::create_new(path).map_err(StorageError::io("create", path))?;
    Ok(Digesting::new(BufWriter::with_capacity(128 * 1024, file)))
}

/// Writes out and syncs a file of [`create`].
pub(super) fn seal(file: Digesting<BufWriter<File>>, path: &Path) -> Result<FileInfo, StorageError> {
    let (buffered, info) = file.finish();
    let file = buffered
        .into_inner()
        .map_err(|error| StorageError::io("write", path)(error.into_error()))?;
    file.sync_all().map_err(StorageError::io("sync", path))?;
    Ok(info)
}

/// Replaces a small file by one rename.
pub(super) fn replace(path: &Path, temporary: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let write = || {
        let mut file = File::create(temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(temporary, path)
    };
    write().map_err(StorageError::io("write", path))
}

/// Makes renames and new entries of a folder durable.
pub(super) fn sync_folder(path: &Path) -> Result<(), StorageError> {
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(StorageError::io("sync", path))
}

/// Size and digest of an open file as it is now. `go_on` is asked after so many bytes.
pub(super) fn measure(
    file: &File,
    path: &Path,
    go_on: &dyn Fn(u64) -> bool,
) -> Result<FileInfo, StorageError> {
    let mut digesting = Digesting::new(io::sink());
    let (mut buffer, mut offset) = (vec![0; 128 * 1024], 0);
    loop {
        let read = match file.read_at(&mut buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(StorageError::io("read", path))?,
        };
        if read == 0 {
            return Ok(digesting.finish().1);
        }
        digesting
            .write_all(buffer.get(..read).unwrap_or_default())
            .map_err(StorageError::io("read", path))?;
        offset += read as u64;
        if !go_on(read as u64) {
            return Err(StorageError::Interrupted);
        }
    }
}

/// Removes a file or a whole folder, also when it is not there.
pub(super) fn remove(path: &Path) -> Result<(), StorageError> {
    let gone = |error: io::Error| {
        if error.kind() == io::ErrorKind::NotFound {
            Ok(())
        } else {
            Err(error)
        }
    };
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(gone).map_err(StorageError::io("remove", path))
}

/// Lower case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}
