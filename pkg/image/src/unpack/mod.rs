//! Layers onto disk, by our own rules.
//!
//! Whatever an archive says: nothing is written outside the root, no link leads out of it, no
//! device or pipe is made, nothing is owned by anyone but us, and size, number, depth and time
//! are bounded. The `tar` crate is used for its headers only: its extraction has other rules, and
//! its handling of long names reads them unbounded.

mod entry;
mod error;
mod meter;
mod place;
mod placed;

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

pub use error::UnpackError;
pub(crate) use meter::Budget;

use entry::{Meta, names};
use meter::Meter;
use place::Root;
use placed::Placed;

use crate::config::Limits;

/// Marks the removal of an entry of a lower layer.
const WHITEOUT: &[u8] = b".wh.";
/// Marks the removal of everything lower layers put into a directory.
const OPAQUE: &[u8] = b".wh..wh..opq";
/// Other marks that are no entries.
const RESERVED: &[u8] = b".wh..wh.";

/// Largest window of a zstd frame, as a power of two: 32 MiB, which level 20 of zstd needs. A decoder takes that much memory.
const ZSTD_WINDOW_LOG: u32 = 25;

/// Applies layers, lowest first.
pub(crate) struct Unpacker {
    root: Root,
    /// Only entries at or below this path.
    below: Vec<OsString>,
    limits: Limits,
    budget: Budget,
}

impl Unpacker {
    /// Unpacks below an existing, empty directory.
    pub(crate) fn new(root: PathBuf, below: Vec<OsString>, limits: Limits, budget: Budget) -> Self {
        Self {
            root: Root::new(root),
            below,
            limits,
            budget,
        }
    }

    /// Applies one layer of `size` transferred bytes.
    pub(crate) fn apply(&mut self, layer: File, size: u64) -> Result<(), UnpackError> {
        let (meter, exceeded) = Meter::new(decompressed(layer)?, self.budget.clone(), size, &self.limits);
        let mut archive = tar::Archive::new(meter);
        let result = self.entries(&mut archive);
        // The meter stops a read by an error of its own, which the tar crate wraps.
        exceeded.take().map_or(result, Err)
    }

    fn entries<R: Read>(&mut self, archive: &mut tar::Archive<R>) -> Result<(), UnpackError> {
        let mut meta = Meta::default();
        let mut placed = Placed::default();
        for entry in archive.entries().map_err(UnpackError::Read)?.raw(true) {
            let mut entry = entry.map_err(UnpackError::Read)?;
            self.budget.entry(&self.limits)?;
            if meta.absorb(&mut entry)? {
                continue;
            }
            let meta = std::mem::take(&mut meta);
            self.place(&mut entry, &meta, &mut placed)?;
        }
        Ok(())
    }

    fn place<R: Read>(
        &mut self,
        entry: &mut tar::Entry<'_, R>,
        meta: &Meta,
        placed: &mut Placed,
    ) -> Result<(), UnpackError> {
        let name = meta
            .path
            .clone()
            .unwrap_or_else(|| entry.path_bytes().into_owned());
        let parts = names(&name)?;
        if !parts.starts_with(&self.below) {
            return Ok(());
        }
        let shown = || PathBuf::from(OsStr::from_bytes(&name));
        if parts.len() > self.limits.depth {
            return Err(UnpackError::TooDeep {
                path: shown(),
                limit: self.limits.depth,
            });
        }
        let Some((last, above)) = parts.split_last() else {
            // The root itself.
            return Ok(());
        };
        if last.as_bytes().starts_with(WHITEOUT) {
            return self.white_out(above, last.as_bytes(), &shown(), placed);
        }
        let kind = entry.header().entry_type();
        let parent = self.root.directory(above)?;
        let at = parent.path(last);
        if kind.is_dir() {
            self.root.make_directory(&at)?;
        } else if kind.is_file() || kind.is_contiguous() {
            meta.check_size(entry, &shown())?;
            let size = entry.size();
            if size > self.limits.file {
                return Err(UnpackError::FileTooLarge {
                    path: shown(),
                    limit: self.limits.file,
                });
            }
            let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
            self.root.write_file(&at, executable, size, entry)?;
        } else if kind.is_symlink() {
            let target = meta
                .link(entry)
                .ok_or_else(|| UnpackError::Name { name: shown() })?;
            self.root.link_symbolically(&at, &parent, &target)?;
        } else if kind.is_hard_link() {
            let target = meta
                .link(entry)
                .ok_or_else(|| UnpackError::Name { name: shown() })?;
            self.root.link_hard(&at, &names(&target)?, &shown())?;
        } else {
            return Err(UnpackError::Special {
                path: shown(),
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

    fn white_out(
        &self,
        above: &[OsString],
        last: &[u8],
        shown: &std::path::Path,
        placed: &Placed,
    ) -> Result<(), UnpackError> {
        // What is to go may never have been there.
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
                name: shown.to_owned(),
            });
        }
        self.root.remove(&parent.path(hidden))
    }
}

/// The layer's tar stream; how it is packed is read off its first bytes.
fn decompressed(mut layer: File) -> Result<Box<dyn Read>, UnpackError> {
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
    let stream = io::BufReader::with_capacity(128 * 1024, io::Cursor::new(head).chain(layer));
    match kind.as_slice() {
        [0x1f, 0x8b, ..] => Ok(Box::new(flate2::bufread::MultiGzDecoder::new(stream))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(stream).map_err(UnpackError::Read)?;
            decoder
                .window_log_max(ZSTD_WINDOW_LOG)
                .map_err(UnpackError::Read)?;
            Ok(Box::new(decoder))
        }
        [b'B', b'Z', b'h', ..] => unsupported("bzip2"),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => unsupported("xz"),
        _ => Ok(Box::new(stream)),
    }
}

#[cfg(test)]
mod tests;
