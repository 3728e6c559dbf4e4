//! The files of a catalog's directory, in the order in which they are read.
//!
//! The order is lexical and depth first, like upstream's. A symlink to a file below the root is read like that
//! file. All other symlinks are skipped, so nothing outside the root is ever read.

mod in_order;

use std::{
    fs, io,
    path::{Path, PathBuf},
    vec,
};

use olm_fbc::{IgnoreError, IndexIgnore};
use thiserror::Error;

pub use in_order::{InOrder, Unordered};

const IGNORE_FILE: &str = ".indexignore";
/// Number of bytes of paths for each of [`WalkLimits::max_entries`]. The longest path of 306 real packages has 60 bytes.
const PATH_BYTES: u64 = 128;

/// Limits on a catalog's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimits {
    /// Maximum number of files and directories.
    pub max_entries: u64,
    /// Maximum depth of directories.
    pub max_depth: u64,
    /// Maximum size of the files that are read, in bytes. A link counts as its file: a small image may have two hundred
    /// thousand links to one large file.
    pub max_bytes: u64,
}

impl WalkLimits {
    /// Returns the maximum length of the names of all files and directories together, in bytes.
    fn max_path_bytes(&self) -> u64 {
        self.max_entries.saturating_mul(PATH_BYTES)
    }
}

impl Default for WalkLimits {
    /// 200,000 entries, 64 levels, 8 GiB.
    fn default() -> Self {
        Self {
            max_entries: 200_000,
            max_depth: 64,
            max_bytes: 8 * 1024 * 1024 * 1024,
        }
    }
}

/// Files of a catalog, in the order in which they are read: the path to open, and the name relative to the root with `/` as
/// separator.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
    names: vec::IntoIter<String>,
}

impl Iterator for Files {
    type Item = (PathBuf, String);

    fn next(&mut self) -> Option<Self::Item> {
        let name = self.names.next()?;
        Some((self.root.join(&name), name))
    }
}

/// Returns the files of the catalog in `root`. Blocks on the disk.
///
/// # Errors
/// A directory cannot be read, a limit is exceeded, or an `.indexignore` is malformed.
pub fn walk(root: &Path, limits: &WalkLimits) -> Result<Files, WalkError> {
    let inside = root.canonicalize().map_err(WalkError::read(root))?;
    let mut walk = Walk {
        limits: *limits,
        inside,
        entries: 0,
        path_bytes: 0,
        files: Vec::new(),
        ignores: Vec::new(),
        ignore_bytes: 0,
    };
    walk.folder(root, "", 0)?;
    let ignored = IndexIgnore::new(walk.ignores).map_err(WalkError::Ignore)?;
    let mut names = walk.files;
    ignored.retain(&mut names).map_err(WalkError::Ignore)?;
    check_size(root, &names, limits)?;
    Ok(Files {
        root: root.to_owned(),
        names: names.into_iter(),
    })
}

/// Checks the size of the files to read. Readers need no limit of their own: the directory does not change.
fn check_size(root: &Path, names: &[String], limits: &WalkLimits) -> Result<(), WalkError> {
    let mut bytes = 0_u64;
    for name in names {
        let path = root.join(name);
        let length = fs::metadata(&path).map_err(WalkError::read(path))?.len();
        bytes = bytes.saturating_add(length);
        if bytes > limits.max_bytes {
            return Err(WalkError::TooLarge {
                what: "bytes in its files, with each link counted as its file",
                limit: limits.max_bytes,
            });
        }
    }
    Ok(())
}

/// Failure to list the files of a catalog.
#[derive(Debug, Error)]
pub enum WalkError {
    /// The operating system refused to read a file or directory.
    #[error("cannot read {}", path.display())]
    Read {
        /// File or directory.
        path: PathBuf,
        /// Reason from the operating system.
        #[source]
        source: io::Error,
    },
    /// An `.indexignore` cannot be used.
    #[error("error walking FBC root: the .indexignore files of the catalog are not valid")]
    Ignore(#[source] IgnoreError),
    /// The directory exceeds a limit.
    #[error("error walking FBC root: the catalog has more than {limit} {what}")]
    TooLarge {
        /// Counted thing.
        what: &'static str,
        /// Maximum.
        limit: u64,
    },
    /// A file name is not UTF-8.
    #[error("error walking FBC root: the name of file {} is not UTF-8", path.display())]
    FileName {
        /// The file.
        path: PathBuf,
    },
}

impl WalkError {
    fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Read { path, source }
    }
}

struct Walk {
    limits: WalkLimits,
    /// The root without symlinks in its path.
    inside: PathBuf,
    entries: u64,
    path_bytes: u64,
    files: Vec<String>,
    ignores: Vec<(String, String)>,
    ignore_bytes: u64,
}

impl Walk {
    fn folder(&mut self, path: &Path, name: &str, depth: u64) -> Result<(), WalkError> {
        if depth > self.limits.max_depth {
            return Err(WalkError::TooLarge {
                what: "levels of folders",
                limit: self.limits.max_depth,
            });
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(WalkError::read(path))? {
            let entry = entry.map_err(WalkError::read(path))?;
            self.entries += 1;
            if self.entries > self.limits.max_entries {
                return Err(WalkError::TooLarge {
                    what: "files",
                    limit: self.limits.max_entries,
                });
            }
            let kind = entry.file_type().map_err(WalkError::read(entry.path()))?;
            let Ok(own) = entry.file_name().into_string() else {
                return Err(WalkError::FileName { path: entry.path() });
            };
            self.count_path(name, &own)?;
            entries.push((own, kind));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        for (own, kind) in entries {
            let path = path.join(&own);
            let full = if name.is_empty() {
                own.clone()
            } else {
                format!("{name}/{own}")
            };
            if kind.is_dir() {
                self.folder(&path, &full, depth + 1)?;
            } else if kind.is_file() && own == IGNORE_FILE {
                let text = self.read_ignore(&path)?;
                self.ignores.push((name.to_owned(), text));
            } else if kind.is_file() || self.is_linked_file(&path) {
                self.files.push(full);
            } else {
                tracing::debug!(file = full, "neither a regular file nor a link to one, left out");
            }
        }
        Ok(())
    }

    /// Counts the name of an entry of the folder `name`. Names are held in memory, and one may have 4 KiB.
    fn count_path(&mut self, name: &str, own: &str) -> Result<(), WalkError> {
        let limit = self.limits.max_path_bytes();
        self.path_bytes += (name.len() + own.len() + 1) as u64;
        if self.path_bytes > limit {
            return Err(WalkError::TooLarge {
                what: "bytes in the paths of its files",
                limit,
            });
        }
        Ok(())
    }

    /// Reads an `.indexignore`. Checks the limits on all of them first, because their texts are held in memory.
    fn read_ignore(&mut self, path: &Path) -> Result<String, WalkError> {
        let length = fs::metadata(path).map_err(WalkError::read(path))?.len();
        self.ignore_bytes = self.ignore_bytes.saturating_add(length);
        IndexIgnore::check(self.ignores.len() + 1, self.ignore_bytes).map_err(WalkError::Ignore)?;
        fs::read_to_string(path).map_err(WalkError::read(path))
    }

    /// Returns true if `path` leads to a regular file below the root.
    fn is_linked_file(&self, path: &Path) -> bool {
        path.canonicalize()
            .is_ok_and(|target| target.starts_with(&self.inside) && target.is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path) -> Vec<String> {
        walk(root, &WalkLimits::default())
            .unwrap()
            .map(|(_, name)| name)
            .collect()
    }

    #[test]
    fn lexical_depth_first_without_what_is_ignored() {
        let root = tempfile::tempdir().unwrap();
        for file in [
            "b/x.yaml",
            "a/two/z",
            "a/one.json",
            "a-b",
            "README",
            "b/y.tmp",
            "c/deep/q.yaml",
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "{}").unwrap();
        }
        fs::write(root.path().join(IGNORE_FILE), "# note\nREADME\n*.tmp\nc/\n").unwrap();
        assert_eq!(names(root.path()), ["a/one.json", "a/two/z", "a-b", "b/x.yaml"]);
    }

    #[test]
    fn symlinks_do_not_lead_outside() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "{}").unwrap();
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("dir")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), root.path().join("file")).unwrap();
        fs::write(root.path().join("real"), "{}").unwrap();
        std::os::unix::fs::symlink("real", root.path().join("link")).unwrap();
        assert_eq!(names(root.path()), ["link", "real"]);
    }

    #[test]
    fn limits_hold() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        let limits = WalkLimits {
            max_depth: 2,
            ..WalkLimits::default()
        };
        assert!(walk(root.path(), &limits).is_err());
        let limits = WalkLimits {
            max_entries: 2,
            ..WalkLimits::default()
        };
        assert!(walk(root.path(), &limits).is_err());
    }

    #[test]
    fn ignore_files_are_limited_together() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: String, text: &str| {
            fs::create_dir(root.path().join(&name)).unwrap();
            fs::write(root.path().join(name).join(IGNORE_FILE), text).unwrap();
        };
        let half = "#".repeat(512 * 1024);
        write("a".to_owned(), &half);
        write("b".to_owned(), &half);
        assert!(names(root.path()).is_empty());
        write("c".to_owned(), "#");
        let error = walk(root.path(), &WalkLimits::default()).unwrap_err();
        assert!(
            matches!(error, WalkError::Ignore(IgnoreError::TooLong)),
            "{error:?}"
        );
    }

    #[test]
    fn paths_are_limited_together() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("d".repeat(200));
        fs::create_dir(&deep).unwrap();
        fs::write(deep.join("f".repeat(200)), "").unwrap();
        // 201 bytes of the folder and 402 of the file.
        let limits = |max_entries| WalkLimits {
            max_entries,
            ..WalkLimits::default()
        };
        let error = walk(root.path(), &limits(4)).unwrap_err().to_string();
        assert!(error.contains("more than 512 bytes in the paths"), "{error}");
        assert_eq!(walk(root.path(), &limits(5)).unwrap().count(), 1);
    }

    #[test]
    fn every_link_counts_as_its_file() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "12345").unwrap();
        fs::hard_link(root.path().join("a"), root.path().join("b")).unwrap();
        std::os::unix::fs::symlink("a", root.path().join("c")).unwrap();
        fs::write(root.path().join("ignored"), "12345").unwrap();
        fs::write(root.path().join(IGNORE_FILE), "ignored").unwrap();
        let limits = |max_bytes| WalkLimits {
            max_bytes,
            ..WalkLimits::default()
        };
        assert_eq!(walk(root.path(), &limits(15)).unwrap().count(), 3);
        let error = walk(root.path(), &limits(14)).unwrap_err().to_string();
        assert!(error.contains("more than 14 bytes in its files"), "{error}");
    }
}
