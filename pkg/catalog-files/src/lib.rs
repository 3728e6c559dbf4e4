//! The files of a catalog's directory, in the order in which they are read.
//!
//! The order is lexical and depth first, like upstream's. A symlink to a file below the root is read like that
//! file. All other symlinks are skipped, so nothing outside the root is ever read.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use olm_fbc::{IgnoreError, IndexIgnore};
use thiserror::Error;

const IGNORE_FILE: &str = ".indexignore";
/// Maximum size of an `.indexignore`, in bytes.
const MAX_IGNORE_BYTES: u64 = 1024 * 1024;

/// Limits on a catalog's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkLimits {
    /// Maximum number of files and directories.
    pub max_entries: u64,
    /// Maximum depth of directories.
    pub max_depth: u64,
}

impl Default for WalkLimits {
    /// 200,000 entries, 64 levels.
    fn default() -> Self {
        Self {
            max_entries: 200_000,
            max_depth: 64,
        }
    }
}

/// Returns the files of the catalog in `root`, in the order in which they are read: the path to open, and the name
/// relative to the root with `/` as separator. Blocks on the disk.
///
/// # Errors
/// A directory cannot be read, a limit is exceeded, or an `.indexignore` is malformed.
pub fn walk(root: &Path, limits: &WalkLimits) -> Result<Vec<(PathBuf, String)>, WalkError> {
    let inside = root.canonicalize().map_err(WalkError::read(root))?;
    let mut walk = Walk {
        limits: *limits,
        inside,
        entries: 0,
        files: Vec::new(),
        ignores: Vec::new(),
    };
    walk.folder(root, "", 0)?;
    let ignored = IndexIgnore::new(walk.ignores).map_err(WalkError::Ignore)?;
    let mut files = walk.files;
    files.retain(|(_, name)| !ignored.is_ignored(name));
    Ok(files)
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
    files: Vec<(PathBuf, String)>,
    ignores: Vec<(String, String)>,
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
            entries.push((own, entry.path(), kind));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        for (own, path, kind) in entries {
            let full = if name.is_empty() {
                own.clone()
            } else {
                format!("{name}/{own}")
            };
            if kind.is_dir() {
                self.folder(&path, &full, depth + 1)?;
            } else if kind.is_file() && own == IGNORE_FILE {
                self.ignores.push((name.to_owned(), read_ignore(&path)?));
            } else if kind.is_file() {
                self.files.push((path, full));
            } else if let Some(target) = self.linked(&path) {
                self.files.push((target, full));
            } else {
                tracing::debug!(file = full, "neither a regular file nor a link to one, left out");
            }
        }
        Ok(())
    }

    /// The regular file below the root that `path` leads to.
    fn linked(&self, path: &Path) -> Option<PathBuf> {
        let target = path.canonicalize().ok()?;
        (target.starts_with(&self.inside) && target.is_file()).then_some(target)
    }
}

fn read_ignore(path: &Path) -> Result<String, WalkError> {
    let read = || {
        if fs::metadata(path)?.len() > MAX_IGNORE_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "longer than 1 MiB"));
        }
        fs::read_to_string(path)
    };
    read().map_err(WalkError::read(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path) -> Vec<String> {
        walk(root, &WalkLimits::default())
            .unwrap()
            .into_iter()
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
            max_entries: 10,
            max_depth: 2,
        };
        assert!(walk(root.path(), &limits).is_err());
        let limits = WalkLimits {
            max_entries: 2,
            max_depth: 20,
        };
        assert!(walk(root.path(), &limits).is_err());
    }
}
