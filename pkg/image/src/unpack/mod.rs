//! Unpacks layers to disk by our own rules.
//!
//! Whatever an archive contains: nothing is written outside the root, no link leads out of it, no device or pipe is
//! created, everything belongs to our user, and size, number, depth and time are bounded. The `tar` crate parses
//! headers only: its extraction has other rules, and its handling of long names reads them unbounded.

mod ahead;
mod entry;
mod error;
mod meter;
mod placed_paths;
mod root;
mod stream;

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

pub use error::UnpackError;
pub(crate) use meter::Budget;
pub use meter::CancelGuard;
pub(crate) use stream::each_file;
pub use stream::{StreamEntry, StreamError};

use ahead::Ahead;
use entry::{ExtensionHeaders, split_name};
use meter::{Input, Meter};
use placed_paths::PlacedPaths;
use root::Root;

use crate::limits::Limits;

/// Prefix that removes an entry of a lower layer.
const WHITEOUT: &[u8] = b".wh.";
/// Name that removes all entries of lower layers from a directory.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Prefix of other markers that are not entries.
const RESERVED: &[u8] = b".wh..wh.";

/// Maximum window of a zstd frame, as a power of two: 32 MiB, which level 20 of zstd needs. A decoder takes that much
/// memory.
const ZSTD_WINDOW_LOG: u32 = 25;

/// Size of a compressed layer from which another thread decompresses it, in bytes. A small one takes less time than the thread.
const AHEAD_FROM: u64 = 1024 * 1024;

/// Number of bytes of a compressed layer that are read at once. Cancellation and time limit are checked for each of these reads.
const INPUT_BUFFER: usize = 128 * 1024;

/// Applies layers, lowest first.
pub(crate) struct Unpacker {
    root: Root,
    /// Selects entries at or below this path.
    below: Vec<OsString>,
    limits: Limits,
    budget: Budget,
    /// See [`AHEAD_FROM`].
    ahead_from: u64,
}

impl Unpacker {
    /// Creates an unpacker for an existing, empty directory.
    pub(crate) fn new(root: PathBuf, below: Vec<OsString>, limits: Limits, budget: Budget) -> Self {
        Self {
            root: Root::new(root),
            below,
            limits,
            budget,
            ahead_from: AHEAD_FROM,
        }
    }

    /// Applies one layer of `size` compressed bytes.
    pub(crate) fn apply(&mut self, layer: File, size: u64) -> Result<(), UnpackError> {
        let layer = OpenLayer {
            file: layer,
            size,
            zstd_window_log: ZSTD_WINDOW_LOG,
            ahead_from: self.ahead_from,
        };
        let mut placed = PlacedPaths::default();
        each_entry(layer, &self.limits, &self.budget, |entry, headers| {
            self.write_entry(entry, headers, &mut placed)
        })
    }

    fn write_entry<R: Read>(
        &self,
        entry: &mut tar::Entry<'_, R>,
        headers: &ExtensionHeaders,
        placed: &mut PlacedPaths,
    ) -> Result<(), UnpackError> {
        let name = headers.name(entry);
        let parts = split_name(&name)?;
        if !parts.starts_with(&self.below) && !hides(&self.below, &parts) {
            return Ok(());
        }
        let display_path = || PathBuf::from(OsStr::from_bytes(&name));
        if parts.len() > self.limits.depth {
            return Err(UnpackError::TooDeep {
                path: display_path(),
                limit: self.limits.depth,
            });
        }
        let Some((last, above)) = parts.split_last() else {
            // The root itself.
            return Ok(());
        };
        if last.as_bytes().starts_with(WHITEOUT) {
            return self.apply_whiteout(above, last.as_bytes(), &display_path(), placed);
        }
        let kind = entry.header().entry_type();
        // An entry may imply many directories, each of which takes an inode like an entry.
        let implied = |path: &Path| {
            self.budget.entry(&self.limits)?;
            self.budget.path(path, &self.limits)
        };
        let parent = self.root.directory(above, &implied)?;
        let at = parent.path(last);
        // Symbolic links can lead a short name to a long path.
        self.budget
            .path(at.strip_prefix(self.root.path()).unwrap_or(&at), &self.limits)?;
        if kind.is_dir() {
            self.root.ensure_directory(&at)?;
        } else if kind.is_file() || kind.is_contiguous() {
            let size = file_size(entry, headers, &self.limits, &display_path)?;
            let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
            self.root.write_file(&at, executable, size, entry)?;
        } else if kind.is_symlink() {
            let target = headers
                .link(entry)
                .ok_or_else(|| UnpackError::Name { name: display_path() })?;
            self.root.create_symlink(&at, &parent, &target)?;
        } else if kind.is_hard_link() {
            let target = headers
                .link(entry)
                .ok_or_else(|| UnpackError::Name { name: display_path() })?;
            self.root
                .create_hard_link(&at, &split_name(&target)?, &display_path())?;
        } else {
            return Err(UnpackError::Special {
                path: display_path(),
                kind: entry::kind_name(kind),
            });
        }
        let mut path = Some(at.as_path());
        while let Some(current) = path
            && current != self.root.path()
            && placed.insert(current)
        {
            path = current.parent();
        }
        Ok(())
    }

    fn apply_whiteout(
        &self,
        above: &[OsString],
        last: &[u8],
        display_path: &Path,
        placed: &PlacedPaths,
    ) -> Result<(), UnpackError> {
        // The hidden entry may not exist.
        let Some(parent) = self.root.existing(above)? else {
            return Ok(());
        };
        if last == OPAQUE {
            return self.root.clear(parent.as_path(), placed);
        }
        if last.starts_with(RESERVED) {
            return Ok(());
        }
        let hidden = OsStr::from_bytes(last.get(WHITEOUT.len()..).unwrap_or_default());
        if hidden.is_empty() || hidden == "." || hidden == ".." {
            return Err(UnpackError::Name {
                name: display_path.to_owned(),
            });
        }
        self.root.hide(&parent.path(hidden), placed)
    }
}

/// Layer that is about to be read.
struct OpenLayer {
    file: File,
    /// Compressed size in bytes.
    size: u64,
    /// Maximum window of a zstd frame, as a power of two.
    zstd_window_log: u32,
    /// See [`AHEAD_FROM`].
    ahead_from: u64,
}

/// Calls `visit` with the entries of a layer, each with its extension headers.
fn each_entry<E: From<UnpackError>>(
    layer: OpenLayer,
    limits: &Limits,
    budget: &Budget,
    visit: impl FnMut(&mut tar::Entry<'_, Meter<Box<dyn Read>>>, &ExtensionHeaders) -> Result<(), E>,
) -> Result<(), E> {
    let (stream, guard) = decompress(layer.file, layer.zstd_window_log, budget)?;
    let stream: Box<dyn Read> = match stream {
        stream if layer.size < layer.ahead_from => stream,
        stream => Box::new(Ahead::start(stream).map_err(UnpackError::Read)?),
    };
    let (meter, stop_reason) = Meter::new(stream, budget.clone(), layer.size, limits);
    let mut archive = tar::Archive::new(meter);
    // Dropped before the archive, which waits for the other thread: an entry may be refused while that thread reads input without output.
    let _ends_input = guard;
    let result = each_in_archive(&mut archive, limits, budget, visit);
    // The meter stops a read by its own error, which the tar crate wraps.
    stop_reason.take().map_or(result, |stopped| Err(stopped.into()))
}

fn each_in_archive<R: Read, E: From<UnpackError>>(
    archive: &mut tar::Archive<R>,
    limits: &Limits,
    budget: &Budget,
    mut visit: impl FnMut(&mut tar::Entry<'_, R>, &ExtensionHeaders) -> Result<(), E>,
) -> Result<(), E> {
    let mut headers = ExtensionHeaders::default();
    for entry in archive.entries().map_err(UnpackError::Read)?.raw(true) {
        let mut entry = entry.map_err(UnpackError::Read)?;
        budget.entry(limits)?;
        if headers.read_header(&mut entry)? {
            continue;
        }
        visit(&mut entry, &std::mem::take(&mut headers))?;
    }
    Ok(())
}

/// Returns the size of a file within the limit.
fn file_size<R: Read>(
    entry: &tar::Entry<'_, R>,
    headers: &ExtensionHeaders,
    limits: &Limits,
    display_path: &dyn Fn() -> PathBuf,
) -> Result<u64, UnpackError> {
    headers.check_size(entry, &display_path())?;
    let size = entry.size();
    if size > limits.file {
        return Err(UnpackError::FileTooLarge {
            path: display_path(),
            limit: limits.file,
        });
    }
    Ok(size)
}

/// Returns true if the entry is a whiteout above the path `below` that hides it with everything below.
fn hides(below: &[OsString], parts: &[OsString]) -> bool {
    let Some((last, above)) = parts.split_last() else {
        return false;
    };
    let hidden = last.as_bytes().strip_prefix(WHITEOUT).map(OsStr::from_bytes);
    let below = below.strip_prefix(above);
    last.as_bytes() == OPAQUE && below.is_some()
        || hidden.is_some() && hidden == below.and_then(|rest| rest.first()).map(OsString::as_os_str)
}

/// Returns the layer's tar stream, and a guard that ends its input; the first bytes identify its compression.
fn decompress(
    mut layer: File,
    zstd_window_log: u32,
    budget: &Budget,
) -> Result<(Box<dyn Read + Send>, CancelGuard), UnpackError> {
    let mut magic = [0; 6];
    let mut length = 0;
    while let Some(rest) = magic.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match layer.read(rest).map_err(UnpackError::Read)? {
            0 => break,
            read => length += read,
        }
    }
    let head = magic.get(..length).unwrap_or_default().to_vec();
    let unsupported = |kind| Err(UnpackError::Compression { kind });
    let kind = head.clone();
    let (input, guard) = Input::new(io::Cursor::new(head).chain(layer), budget.clone());
    let stream = io::BufReader::with_capacity(INPUT_BUFFER, input);
    match kind.as_slice() {
        [0x1f, 0x8b, ..] => Ok((Box::new(flate2::bufread::MultiGzDecoder::new(stream)), guard)),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(stream).map_err(UnpackError::Read)?;
            decoder
                .window_log_max(zstd_window_log)
                .map_err(UnpackError::Read)?;
            Ok((Box::new(decoder), guard))
        }
        [b'B', b'Z', b'h', ..] => unsupported("bzip2"),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => unsupported("xz"),
        _ => Ok((Box::new(stream), guard)),
    }
}

#[cfg(test)]
mod tests;
