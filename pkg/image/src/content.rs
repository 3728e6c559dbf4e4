//! Digest of unpacked content, so that damage on the disk is found before the content is used again.

use std::{
    ffi::OsString,
    fs::{self, File, FileType},
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
    rc::Rc,
};

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of the names, the types and the bytes of everything below a folder, hexadecimal.
pub(crate) fn digest(root: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    // Entries without their folder: there may be as many as `Limits::unpacked`, with paths of 4 KiB.
    let mut folders: Vec<(Rc<Path>, OsString)> = vec![(Path::new("").into(), OsString::new())];
    while let Some((above, own)) = folders.pop() {
        let folder: Rc<Path> = if own.is_empty() {
            above
        } else {
            above.join(own).into()
        };
        let mut entries: Vec<(OsString, FileType)> = Vec::new();
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            entries.push((entry.file_name(), entry.file_type()?));
        }
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (own, kind) in entries {
            let name = folder.join(&own);
            let path = root.join(&name);
            add(&mut hash, name.as_os_str().as_bytes());
            if kind.is_dir() {
                hash.update(b"d");
                folders.push((folder.clone(), own));
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

    #[test]
    fn the_digest_of_stored_content_stays_the_same() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b/x/1", "b/y/2", "a/z/3", "a.b"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        assert_eq!(
            digest(folder.path()).unwrap(),
            "97f47bbb3faae8793ff7aaa9ad4012a1e2d7e7463cd95fcb6e58a8b90d832b32"
        );
    }
}
