//! Digest of unpacked content, so that damage on the disk is found before the content is used again.

use std::{
    fs::{self, File, FileType},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of the names, the types and the bytes of everything below a folder, hexadecimal.
pub(crate) fn digest(root: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<(PathBuf, FileType)> = Vec::new();
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            entries.push((folder.join(entry.file_name()), entry.file_type()?));
        }
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, kind) in entries {
            let path = root.join(&name);
            add(&mut hash, name.as_os_str().as_bytes());
            if kind.is_dir() {
                hash.update(b"d");
                folders.push(name);
            } else if kind.is_symlink() {
                hash.update(b"l");
                add(&mut hash, fs::read_link(&path)?.as_os_str().as_bytes());
            } else {
                hash.update(b"f");
                let mut one = Sha256::new();
                io::copy(&mut File::open(&path)?, &mut Writer(&mut one))?;
                hash.update(one.finalize());
            }
        }
    }
    Ok(HEXLOWER.encode(&hash.finalize()))
}

/// Adds bytes with their length, so that neighbours cannot be confused.
fn add(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

struct Writer<'a>(&'a mut Sha256);

impl io::Write for Writer<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.update(buffer);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Builds a folder, with one change by number.
    fn built(change: u32) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path(if change == 1 { "e" } else { "d" })).unwrap();
        fs::write(path("a"), if change == 2 { "y" } else { "x" }).unwrap();
        fs::write(path(if change == 3 { "c" } else { "b" }), "").unwrap();
        symlink(if change == 4 { "b" } else { "a" }, path("link")).unwrap();
        digest(folder.path()).unwrap()
    }

    #[test]
    fn every_change_is_another_digest() {
        assert_eq!(built(0), built(0));
        let different: std::collections::BTreeSet<String> = (0..5).map(built).collect();
        assert_eq!(different.len(), 5);
    }
}
