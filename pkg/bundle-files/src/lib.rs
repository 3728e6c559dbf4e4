//! A bundle's files from a folder, be it unpacked from an image or an author's own, bounded in number, size and depth.
//!
//! What [`olm_bundle::parse`](../olm_bundle/fn.parse.html) takes: the parser itself reads no files.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The folders of a bundle that mean anything.
const FOLDERS: [&str; 2] = ["manifests", "metadata"];
/// Files at the top that only tell what an image holds: that they are there is all that is read of them.
const MARKS: [&str; 1] = ["Chart.yaml"];
/// Largest single file.
const FILE_MAX: u64 = 16 * 1024 * 1024;
/// Largest sum of all files.
const TOTAL_MAX: u64 = 64 * 1024 * 1024;
/// Most files.
const COUNT_MAX: usize = 4096;
/// Depth to which folders are followed: one more than permitted, so that the parser can name what is too deep.
const DEPTH_MAX: usize = 3;

/// A bundle whose files cannot be read.
#[derive(Debug, Error)]
pub enum FilesError {
    /// The disk failed.
    #[error("reading {} of the bundle", path.display())]
    Read {
        /// Inside the bundle.
        path: PathBuf,
        /// The disk's error.
        #[source]
        source: std::io::Error,
    },
    /// Larger than any sensible bundle.
    #[error("the bundle is too large: {what}, at most {limit} is accepted")]
    TooLarge {
        /// Counted thing.
        what: String,
        /// Largest permitted count or size.
        limit: u64,
    },
    /// Neither a file nor a folder.
    #[error("{} in the bundle is neither a file nor a folder", path.display())]
    Odd {
        /// Inside the bundle.
        path: PathBuf,
    },
}

/// Reads the bundle at `root`; keys are paths such as `manifests/csv.yaml`, an empty folder's ends in a slash. Folders
/// that are not there are left out; of a Helm chart's `Chart.yaml` it is only told that it is there. Blocks on the disk.
///
/// # Errors
/// The disk fails, there is more than any sensible bundle has, or something is neither a file nor a folder: links are
/// not followed.
pub fn read(root: &Path) -> Result<BTreeMap<String, Vec<u8>>, FilesError> {
    let mut found = Found::default();
    for mark in MARKS {
        if root.join(mark).is_file() {
            found.files.insert(mark.to_owned(), Vec::new());
        }
    }
    for folder in FOLDERS {
        let path = root.join(folder);
        if path.is_dir() {
            found.walk(&path, folder, 0)?;
        }
    }
    Ok(found.files)
}

#[derive(Default)]
struct Found {
    files: BTreeMap<String, Vec<u8>>,
    total: u64,
}

impl Found {
    fn walk(&mut self, folder: &Path, key: &str, depth: usize) -> Result<(), FilesError> {
        let fail = |source| FilesError::Read {
            path: PathBuf::from(key),
            source,
        };
        let mut empty = true;
        for entry in fs::read_dir(folder).map_err(fail)? {
            empty = false;
            let entry = entry.map_err(fail)?;
            // A name that is no text cannot be a manifest's.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let key = format!("{key}/{name}");
            // Links are not followed: `file_type` speaks of the entry itself.
            let kind = entry.file_type().map_err(fail)?;
            if kind.is_dir() && depth < DEPTH_MAX {
                self.walk(&entry.path(), &key, depth + 1)?;
            } else if kind.is_file() {
                self.take(&entry.path(), key)?;
            } else {
                return Err(FilesError::Odd { path: key.into() });
            }
        }
        if empty && depth > 0 {
            // It has no file that would name it, and the parser is to know of it all the same.
            self.files.insert(format!("{key}/"), Vec::new());
        }
        Ok(())
    }

    fn take(&mut self, path: &Path, key: String) -> Result<(), FilesError> {
        if self.files.len() >= COUNT_MAX {
            return Err(FilesError::TooLarge {
                what: "it has more files".to_owned(),
                limit: COUNT_MAX as u64,
            });
        }
        let fail = |source| FilesError::Read {
            path: PathBuf::from(&key),
            source,
        };
        let mut bytes = Vec::new();
        let file = fs::File::open(path).map_err(fail)?;
        let read = file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(fail)? as u64;
        if read > FILE_MAX {
            return Err(FilesError::TooLarge {
                what: format!("{key} has more bytes"),
                limit: FILE_MAX,
            });
        }
        self.total += read;
        if self.total > TOTAL_MAX {
            return Err(FilesError::TooLarge {
                what: "its files have more bytes together".to_owned(),
                limit: TOTAL_MAX,
            });
        }
        self.files.insert(key, bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_only_what_a_bundle_is_made_of() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("manifests/a.yaml", "a"),
            ("metadata/annotations.yaml", "b"),
            ("tests/x.yaml", "c"),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let files = read(root.path()).unwrap();
        let keys: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(keys, ["manifests/a.yaml", "metadata/annotations.yaml"]);
    }

    #[test]
    fn a_link_is_refused_not_followed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("manifests")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", root.path().join("manifests/a.yaml")).unwrap();
        let error = read(root.path()).unwrap_err();
        assert!(matches!(error, FilesError::Odd { .. }), "{error}");
    }

    #[test]
    fn a_folder_in_manifests_reaches_the_parser() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("manifests/sub")).unwrap();
        fs::write(root.path().join("manifests/sub/a.yaml"), "a").unwrap();
        fs::create_dir_all(root.path().join("manifests/void")).unwrap();
        let files = read(root.path()).unwrap();
        assert!(files.contains_key("manifests/sub/a.yaml") && files.contains_key("manifests/void/"));
    }
}
