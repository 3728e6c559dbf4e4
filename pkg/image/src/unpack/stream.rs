//! Reads the files of layers without writing them.
//!
//! A file is passed on as it arrives, so no later entry may change it. Images that need the complete tree are refused: those with
//! links and whiteouts. The order of the entries is left to the visitor. Limits hold as for unpacking, or earlier.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use super::{
    AHEAD_FROM, Budget, OpenLayer, UnpackError, WHITEOUT, each_entry,
    entry::{ExtensionHeaders, split_name},
    file_size, hides,
};
use crate::limits::Limits;

/// Maximum window of a zstd frame, as a power of two: 8 MiB, the default of common writers. Less than for unpacking, because the reader of
/// the files needs memory, too.
const ZSTD_WINDOW_LOG: u32 = 23;
/// Maximum length of a path in bytes. File systems have limits that a stream has not.
const MAX_PATH: usize = 1024;

/// Entry of a layer, at or below the selected directory.
pub struct StreamEntry<'e> {
    /// Components of its path below the selected directory; none for the directory itself.
    pub path: &'e [OsString],
    /// Size in bytes and content of a file; `None` for a directory.
    pub file: Option<(u64, &'e mut dyn Read)>,
}

/// End of a stream before the end of the layers. `E` is the error of its visitor.
#[derive(Debug)]
pub enum StreamError<E> {
    /// Image whose content only unpacking shows.
    Unusual(&'static str),
    /// A layer cannot be read, or exceeds a limit.
    Unpack(UnpackError),
    /// The visitor failed.
    Visitor(E),
}

impl<E> From<UnpackError> for StreamError<E> {
    fn from(error: UnpackError) -> Self {
        Self::Unpack(error)
    }
}

/// Visitor of the entries of a stream.
pub(crate) type Visit<'v, E> = &'v mut dyn FnMut(StreamEntry<'_>) -> Result<(), E>;

/// Calls `visit` with the entries of layers, lowest first, each a file with its compressed size. `below` selects the entries.
pub(crate) fn each_file<E>(
    layers: &[(PathBuf, u64)],
    below: &[OsString],
    limits: &Limits,
    budget: &Budget,
    visit: Visit<'_, E>,
) -> Result<(), StreamError<E>> {
    let filter = Filter {
        below,
        limits,
        budget,
    };
    for (path, size) in layers {
        let layer = OpenLayer {
            file: File::open(path).map_err(UnpackError::Read)?,
            size: *size,
            zstd_window_log: ZSTD_WINDOW_LOG,
            ahead_from: AHEAD_FROM,
        };
        each_entry(layer, limits, budget, |entry, headers| {
            filter.pass(entry, headers, &mut *visit)
        })?;
    }
    Ok(())
}

/// Selection and limits of entries.
struct Filter<'a> {
    below: &'a [OsString],
    limits: &'a Limits,
    budget: &'a Budget,
}

impl Filter<'_> {
    fn pass<R: Read, E>(
        &self,
        entry: &mut tar::Entry<'_, R>,
        headers: &ExtensionHeaders,
        visit: Visit<'_, E>,
    ) -> Result<(), StreamError<E>> {
        let name = headers.name(entry);
        let display_path = || PathBuf::from(OsStr::from_bytes(&name));
        let parts = split_name(&name)?;
        if !parts.starts_with(self.below) && !hides(self.below, &parts) {
            return Ok(());
        }
        if parts
            .last()
            .is_some_and(|last| last.as_bytes().starts_with(WHITEOUT))
        {
            return Err(StreamError::Unusual("a layer hides entries of another"));
        }
        self.count(&parts, &display_path)?;
        let path = parts.get(self.below.len()..).unwrap_or_default();
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            return visit(StreamEntry { path, file: None }).map_err(StreamError::Visitor);
        }
        if !kind.is_file() && !kind.is_contiguous() {
            return Err(StreamError::Unusual("an entry is neither a file nor a directory"));
        }
        let size = file_size(entry, headers, self.limits, &display_path)?;
        let mut content = Counted {
            inner: entry,
            read: 0,
        };
        let file: Option<(u64, &mut dyn Read)> = Some((size, &mut content));
        visit(StreamEntry { path, file }).map_err(StreamError::Visitor)?;
        // An archive that ends in the middle of a file looks like the end of the file.
        if content.read != size {
            let error = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(UnpackError::Read(error).into());
        }
        Ok(())
    }

    /// Counts an entry and the directories above it, as if none of them existed.
    fn count<E>(&self, parts: &[OsString], display_path: &dyn Fn() -> PathBuf) -> Result<(), StreamError<E>> {
        if parts.len() > self.limits.depth {
            return Err(StreamError::Unpack(UnpackError::TooDeep {
                path: display_path(),
                limit: self.limits.depth,
            }));
        }
        let mut path = PathBuf::new();
        for part in parts {
            path.push(part);
            self.budget.entry(self.limits)?;
            self.budget.path(&path, self.limits)?;
        }
        if path.as_os_str().len() > MAX_PATH {
            return Err(StreamError::Unusual("a path is long"));
        }
        Ok(())
    }
}

/// Reader that counts its bytes.
struct Counted<R> {
    inner: R,
    read: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.read = self.read.saturating_add(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
