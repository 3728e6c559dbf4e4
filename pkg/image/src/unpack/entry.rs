//! Names and headers of archive entries.

use std::{
    ffi::{OsStr, OsString},
    io::Read,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use tar::{Entry, EntryType, PaxExtensions};

use super::UnpackError;

/// Maximum size of an extension header or long name, in bytes.
const MAX_HEADER_BYTES: u64 = 1024 * 1024;
/// Maximum length of a path component; file systems accept no more.
const MAX_COMPONENT_BYTES: usize = 255;

/// Extension headers of the entry that follows them.
#[derive(Debug, Default)]
pub(super) struct ExtensionHeaders {
    /// Path that overrides the entry's own header.
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
}

impl ExtensionHeaders {
    /// Reads an extension header of the next entry; returns `false` if `entry` is not one.
    pub(super) fn read_header<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<bool, UnpackError> {
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() {
            self.path = Some(until_nul(read(entry)?));
        } else if kind.is_gnu_longlink() {
            self.link = Some(until_nul(read(entry)?));
        } else if kind.is_pax_local_extensions() {
            let text = read(entry)?;
            self.records(&text, entry)?;
        } else if !kind.is_pax_global_extensions() {
            return Ok(false);
        }
        Ok(true)
    }

    /// Returns the name of the entry that follows.
    pub(super) fn name<R: Read>(&self, entry: &Entry<'_, R>) -> Vec<u8> {
        self.path
            .clone()
            .unwrap_or_else(|| entry.path_bytes().into_owned())
    }

    fn records<R: Read>(&mut self, text: &[u8], entry: &Entry<'_, R>) -> Result<(), UnpackError> {
        let refused = |cause| UnpackError::Header {
            path: header_path(entry),
            cause,
        };
        for record in PaxExtensions::new(text) {
            let record = record.map_err(|_| refused("a PAX record is malformed"))?;
            match record.key_bytes() {
                b"path" => self.path = Some(record.value_bytes().to_vec()),
                b"linkpath" => self.link = Some(record.value_bytes().to_vec()),
                b"size" => {
                    let size = record.value().ok().and_then(|value| value.parse().ok());
                    self.size = Some(size.ok_or_else(|| refused("its PAX size is no number"))?);
                }
                key if key.starts_with(b"GNU.sparse.") => return Err(refused("it is a sparse file")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks that the entry's size is the one by which the archive was split.
    pub(super) fn check_size<R: Read>(&self, entry: &Entry<'_, R>, path: &Path) -> Result<(), UnpackError> {
        match self.size {
            Some(size) if size != entry.size() => Err(UnpackError::Header {
                path: path.to_owned(),
                cause: "its two sizes differ",
            }),
            _ => Ok(()),
        }
    }

    /// Returns the target of a link.
    pub(super) fn link<R: Read>(&self, entry: &Entry<'_, R>) -> Option<Vec<u8>> {
        let target = self
            .link
            .clone()
            .or_else(|| Some(entry.header().link_name_bytes()?.into_owned()))?;
        (!target.is_empty() && !target.contains(&0)).then_some(target)
    }
}

fn read<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, UnpackError> {
    let path = header_path(entry);
    let mut text = Vec::new();
    entry
        .take(MAX_HEADER_BYTES + 1)
        .read_to_end(&mut text)
        .map_err(UnpackError::Read)?;
    if text.len() as u64 > MAX_HEADER_BYTES {
        return Err(UnpackError::Header {
            path,
            cause: "it is too long",
        });
    }
    Ok(text)
}

fn header_path<R: Read>(entry: &Entry<'_, R>) -> PathBuf {
    PathBuf::from(OsString::from_vec(entry.path_bytes().into_owned()))
}

fn until_nul(mut text: Vec<u8>) -> Vec<u8> {
    if let Some(end) = text.iter().position(|byte| *byte == 0) {
        text.truncate(end);
    }
    text
}

/// Splits a name below the root into components. Skips leading slashes and `.`; rejects `..`.
pub(super) fn split_name(name: &[u8]) -> Result<Vec<OsString>, UnpackError> {
    let refused = || UnpackError::Name {
        name: PathBuf::from(OsStr::from_bytes(name)),
    };
    if name.is_empty() {
        return Err(refused());
    }
    name.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty() && *part != b".")
        .map(|part| {
            let fits = part != b".." && part.len() <= MAX_COMPONENT_BYTES && !part.contains(&0);
            fits.then(|| OsStr::from_bytes(part).to_owned())
                .ok_or_else(refused)
        })
        .collect()
}

/// Returns the name of a rejected kind of entry.
pub(super) fn kind_name(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Char => "character device",
        EntryType::Block => "block device",
        EntryType::Fifo => "pipe",
        EntryType::GNUSparse => "sparse file",
        _ => "thing of unknown kind",
    }
}
