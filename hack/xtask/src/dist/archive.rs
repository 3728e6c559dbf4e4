//! Archives whose bytes depend only on their content.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use anyhow::Context as _;
use flate2::{Compression, GzBuilder};

/// A file of an archive.
pub(super) struct Entry {
    pub(super) content: Vec<u8>,
    pub(super) executable: bool,
}

/// Writes a tar archive. Its entries are sorted and have the same owner and time: `epoch` seconds after the Unix epoch.
pub(super) fn tar(path: &Path, files: &BTreeMap<String, Entry>, epoch: u64) -> anyhow::Result<()> {
    let file = create(path)?;
    append(file, files, epoch)
        .map(drop)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a tar archive in gzip format, without name and time in the header of gzip.
pub(super) fn tar_gz(path: &Path, files: &BTreeMap<String, Entry>, epoch: u64) -> anyhow::Result<()> {
    let gzip = GzBuilder::new().write(create(path)?, Compression::best());
    append(gzip, files, epoch)
        .and_then(flate2::write::GzEncoder::finish)
        .map(drop)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn create(path: &Path) -> anyhow::Result<File> {
    File::create(path).with_context(|| format!("cannot create {}", path.display()))
}

fn append<W: Write>(target: W, files: &BTreeMap<String, Entry>, epoch: u64) -> std::io::Result<W> {
    let mut archive = tar::Builder::new(target);
    for (name, entry) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(entry.content.len() as u64);
        header.set_mode(if entry.executable { 0o755 } else { 0o644 });
        header.set_mtime(epoch);
        header.set_entry_type(tar::EntryType::Regular);
        archive.append_data(&mut header, name, entry.content.as_slice())?;
    }
    archive.into_inner()
}

/// Reads all files below a folder, by path in the folder.
pub(super) fn read_folder(folder: &Path) -> anyhow::Result<BTreeMap<String, Entry>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).with_context(|| format!("cannot list {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(
                name,
                Entry {
                    content,
                    executable: false,
                },
            );
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_content_gives_equal_bytes() {
        let folder = std::env::temp_dir().join(format!("xtask-archive-{}", std::process::id()));
        fs::create_dir_all(folder.join("in/b")).unwrap();
        fs::write(folder.join("in/b/c"), "1").unwrap();
        fs::write(folder.join("in/a"), "2").unwrap();
        let files = read_folder(&folder.join("in")).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["a", "b/c"]);
        for name in ["first", "second"] {
            tar_gz(&folder.join(name), &files, 1_000_000_000).unwrap();
        }
        let first = fs::read(folder.join("first")).unwrap();
        assert_eq!(first, fs::read(folder.join("second")).unwrap());
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(first.as_slice()));
        for entry in archive.entries().unwrap() {
            assert_eq!(entry.unwrap().header().mtime().unwrap(), 1_000_000_000);
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
