//! Reads a bundle's files from a folder, with limits of number, size and depth.
//!
//! The folder is unpacked from an image or is the author's own. [`olm_bundle::parse`](../olm_bundle/fn.parse.html)
//! takes the result; the parser itself does no IO.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Folders of a bundle that are read.
const FOLDERS: [&str; 2] = ["manifests", "metadata"];
/// Top-level files that identify another format. Only their presence matters.
const FORMAT_FILES: [&str; 1] = ["Chart.yaml"];
/// Maximum size of a file, in bytes.
const FILE_MAX: u64 = 16 * 1024 * 1024;
/// Maximum size of all files, in bytes.
const TOTAL_MAX: u64 = 64 * 1024 * 1024;
/// Maximum number of files and empty folders.
const COUNT_MAX: usize = 4096;
/// Maximum depth of folders: one more than permitted, so that the parser can name the folder that is too deep.
const DEPTH_MAX: usize = 3;

/// Failure to read the files of a bundle.
#[derive(Debug, Error)]
pub enum FilesError {
    /// A file cannot be read.
    #[error("reading {} of the bundle", path.display())]
    Read {
        /// Path inside the bundle.
        path: PathBuf,
        /// IO error.
        #[source]
        source: std::io::Error,
    },
    /// The bundle exceeds a limit.
    #[error("the bundle is too large: {what} than the limit of {limit}")]
    TooLarge {
        /// Description of the counted items.
        what: String,
        /// Largest permitted count or size.
        limit: u64,
    },
    /// An entry is neither a file nor a folder.
    #[error("{} in the bundle is neither a file nor a folder", path.display())]
    UnsupportedType {
        /// Path inside the bundle.
        path: PathBuf,
    },
}

/// Reads the bundle at `root`. Keys are paths such as `manifests/csv.yaml`; the path of an empty folder ends in a
/// slash. Absent folders are skipped. A Helm chart's `Chart.yaml` is empty in the result. Blocks on disk IO.
///
/// # Errors
/// [`FilesError`] if a read fails, a limit is exceeded, or an entry is neither a file nor a folder. Links are not
/// followed.
pub fn read(root: &Path) -> Result<BTreeMap<String, Vec<u8>>, FilesError> {
    let mut reader = Reader::default();
    for name in FORMAT_FILES {
        if root.join(name).is_file() {
            reader.files.insert(name.to_owned(), Vec::new());
        }
    }
    for folder in FOLDERS {
        let path = root.join(folder);
        if path.is_dir() {
            reader.walk(&path, folder, 0)?;
        }
    }
    Ok(reader.files)
}

/// Returns the size of the files that [`read`] reads, in bytes. What cannot be read counts as nothing: [`read`] reports it.
/// Blocks on disk IO.
pub fn size(root: &Path) -> u64 {
    FOLDERS
        .iter()
        .map(|folder| size_below(&root.join(folder), 0))
        .fold(0, u64::saturating_add)
}

fn size_below(folder: &Path, depth: usize) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries
        .take(COUNT_MAX)
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() && depth < DEPTH_MAX => size_below(&entry.path(), depth + 1),
            Ok(metadata) if metadata.is_file() => metadata.len(),
            _ => 0,
        });
    sizes.fold(0, u64::saturating_add)
}

#[derive(Default)]
struct Reader {
    files: BTreeMap<String, Vec<u8>>,
    total: u64,
}

impl Reader {
    fn walk(&mut self, folder: &Path, key: &str, depth: usize) -> Result<(), FilesError> {
        let fail = |source| FilesError::Read {
            path: PathBuf::from(key),
            source,
        };
        let mut empty = true;
        for entry in fs::read_dir(folder).map_err(fail)? {
            empty = false;
            let entry = entry.map_err(fail)?;
            // A manifest's name is UTF-8.
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let key = format!("{key}/{name}");
            // `file_type` does not follow links.
            let kind = entry.file_type().map_err(fail)?;
            if kind.is_dir() && depth < DEPTH_MAX {
                self.walk(&entry.path(), &key, depth + 1)?;
            } else if kind.is_file() {
                self.read_file(&entry.path(), key)?;
            } else {
                return Err(FilesError::UnsupportedType { path: key.into() });
            }
        }
        if empty && depth > 0 {
            self.check_count()?;
            // The parser reports the folder, although no file names it.
            self.files.insert(format!("{key}/"), Vec::new());
        }
        Ok(())
    }

    /// Checks that another file or empty folder is permitted.
    fn check_count(&self) -> Result<(), FilesError> {
        if self.files.len() >= COUNT_MAX {
            return Err(FilesError::TooLarge {
                what: "it has more files".to_owned(),
                limit: COUNT_MAX as u64,
            });
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path, key: String) -> Result<(), FilesError> {
        self.check_count()?;
        let fail = |source| FilesError::Read {
            path: PathBuf::from(&key),
            source,
        };
        let file = fs::File::open(path).map_err(fail)?;
        // A buffer that grows would take twice the size of the file.
        let length = file.metadata().map_err(fail)?.len().min(FILE_MAX);
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default() + 1);
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
    fn reads_only_the_folders_of_a_bundle() {
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
        assert_eq!(size(root.path()), 2);
        assert_eq!(size(&root.path().join("absent")), 0);
    }

    #[test]
    fn a_link_is_refused_not_followed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("manifests")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", root.path().join("manifests/a.yaml")).unwrap();
        let error = read(root.path()).unwrap_err();
        assert!(matches!(error, FilesError::UnsupportedType { .. }), "{error}");
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

    #[test]
    fn empty_folders_count_as_files() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("manifests")).unwrap();
        for number in 0..=COUNT_MAX {
            fs::create_dir(root.path().join(format!("manifests/{number}"))).unwrap();
        }
        let error = read(root.path()).unwrap_err();
        assert!(matches!(error, FilesError::TooLarge { .. }), "{error}");
    }
}
