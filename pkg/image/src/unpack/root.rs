//! Writes entries below a root that none can leave.
//!
//! Paths are resolved component by component, as the kernel would with the root as its `/`. Symbolic links are
//! rewritten when they are created: relative, without `..` beyond the link's own directory, and never above the root.
//! So readers of the tree that use plain system calls cannot leave it either.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, OpenOptionsExt, symlink},
    },
    path::{Component, Path, PathBuf},
};

use super::{UnpackError, placed_paths::PlacedPaths};

/// Maximum number of links followed for one path, as in the kernel.
const MAX_LINKS: usize = 40;

/// Directory that everything is unpacked below.
pub(super) struct Root(PathBuf);

/// Check that may refuse the creation of a directory at a path below the root.
type Admit<'a> = &'a dyn Fn(&Path) -> Result<(), UnpackError>;

/// Directory below the root, without links in its path.
pub(super) struct Directory {
    path: PathBuf,
    /// Path components below the root.
    parts: Vec<OsString>,
}

impl Directory {
    pub(super) fn as_path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of an entry in it.
    pub(super) fn path(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }
}

impl Root {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the directory at a path. Creates missing directories that `admit` accepts.
    pub(super) fn directory(&self, parts: &[OsString], admit: Admit<'_>) -> Result<Directory, UnpackError> {
        match self.walk(parts, Some(admit))? {
            Some(directory) => Ok(directory),
            None => Err(UnpackError::NotADirectory {
                path: parts.iter().collect(),
            }),
        }
    }

    /// Returns the directory at a path if it exists.
    pub(super) fn existing(&self, parts: &[OsString]) -> Result<Option<Directory>, UnpackError> {
        self.walk(parts, None)
    }

    fn walk(&self, parts: &[OsString], create: Option<Admit<'_>>) -> Result<Option<Directory>, UnpackError> {
        let mut left: VecDeque<OsString> = parts.iter().cloned().collect();
        let mut at: Vec<OsString> = Vec::new();
        let mut links = 0;
        while let Some(part) = left.pop_front() {
            if part == ".." {
                at.pop();
                continue;
            }
            let below: PathBuf = at.iter().chain([&part]).collect();
            let path = self.0.join(&below);
            let found = match fs::symlink_metadata(&path) {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let Some(admit) = create else {
                        return Ok(None);
                    };
                    admit(&below)?;
                    self.create_directory(&path)?;
                    at.push(part);
                    continue;
                }
                Err(source) => return Err(UnpackError::Write { path: below, source }),
            };
            if found.is_symlink() {
                links += 1;
                if links > MAX_LINKS {
                    return Err(UnpackError::Circle { path: below });
                }
                let target =
                    fs::read_link(&path).map_err(|source| UnpackError::Write { path: below, source })?;
                for component in target.components().rev() {
                    match component {
                        Component::Normal(part) => left.push_front(part.to_owned()),
                        Component::ParentDir => left.push_front("..".into()),
                        Component::RootDir => at.clear(),
                        Component::CurDir | Component::Prefix(_) => {}
                    }
                }
            } else if found.is_dir() {
                at.push(part);
            } else if create.is_some() {
                return Err(UnpackError::NotADirectory { path: below });
            } else {
                return Ok(None);
            }
        }
        let path = at.iter().fold(self.0.clone(), |path, part| path.join(part));
        Ok(Some(Directory { path, parts: at }))
    }

    fn create_directory(&self, path: &Path) -> Result<(), UnpackError> {
        DirBuilder::new()
            .mode(0o700)
            .create(path)
            .map_err(|source| self.failed(path, source))
    }

    /// Creates a directory, or keeps an existing one with its content.
    pub(super) fn ensure_directory(&self, at: &Path) -> Result<(), UnpackError> {
        if fs::symlink_metadata(at).is_ok_and(|found| found.is_dir()) {
            return Ok(());
        }
        self.remove(at)?;
        self.create_directory(at)
    }

    /// Writes a file in place of any existing entry.
    pub(super) fn write_file(
        &self,
        at: &Path,
        executable: bool,
        size: u64,
        content: &mut dyn Read,
    ) -> Result<(), UnpackError> {
        self.remove(at)?;
        let mode = if executable { 0o700 } else { 0o600 };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(at)
            .map_err(|source| self.failed(at, source))?;
        let mut buffer = vec![0; 64 * 1024];
        let mut left = size;
        while left > 0 {
            let read = content.read(&mut buffer).map_err(UnpackError::Read)?;
            let bytes = buffer.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                return Err(UnpackError::Read(io::ErrorKind::UnexpectedEof.into()));
            }
            io::Write::write_all(&mut file, bytes).map_err(|source| self.failed(at, source))?;
            left = left.saturating_sub(read as u64);
        }
        Ok(())
    }

    /// Creates a symbolic link in `parent`, rewritten to stay below the root.
    pub(super) fn create_symlink(
        &self,
        at: &Path,
        parent: &Directory,
        target: &[u8],
    ) -> Result<(), UnpackError> {
        let mut to = if target.starts_with(b"/") {
            Vec::new()
        } else {
            parent.parts.clone()
        };
        for component in Path::new(OsStr::from_bytes(target)).components() {
            match component {
                Component::Normal(part) => to.push(part.to_owned()),
                Component::ParentDir => drop(to.pop()),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
        let shared = parent.parts.iter().zip(&to).take_while(|(a, b)| a == b).count();
        let mut relative = PathBuf::new();
        for _ in shared..parent.parts.len() {
            relative.push("..");
        }
        relative.extend(to.iter().skip(shared));
        if relative.as_os_str().is_empty() {
            relative.push(".");
        }
        self.remove(at)?;
        symlink(relative, at).map_err(|source| self.failed(at, source))
    }

    /// Creates a hard link to a file that was unpacked before.
    pub(super) fn create_hard_link(
        &self,
        at: &Path,
        target: &[OsString],
        display_path: &Path,
    ) -> Result<(), UnpackError> {
        let refused = || UnpackError::HardLink {
            path: display_path.to_owned(),
            target: target.iter().collect(),
        };
        let (last, above) = target.split_last().ok_or_else(refused)?;
        let source = self.existing(above)?.ok_or_else(refused)?.path(last);
        if !fs::symlink_metadata(&source).is_ok_and(|found| found.is_file()) {
            return Err(refused());
        }
        if source == at {
            return Ok(());
        }
        self.remove(at)?;
        fs::hard_link(&source, at).map_err(|source| self.failed(at, source))
    }

    /// Removes the entry at a path, if there is one.
    pub(super) fn remove(&self, at: &Path) -> Result<(), UnpackError> {
        let removed = match fs::symlink_metadata(at) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(at),
            Ok(_) => fs::remove_file(at),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(at, error)),
            _ => Ok(()),
        }
    }

    /// Removes the entry of a lower layer at a path, with everything below it, and keeps what this layer placed there (OCI image spec,
    /// "Whiteouts").
    pub(super) fn hide(&self, at: &Path, placed: &PlacedPaths) -> Result<(), UnpackError> {
        if !placed.contains(at) {
            return self.remove(at);
        }
        match fs::symlink_metadata(at) {
            Ok(found) if found.is_dir() => self.clear(at, placed),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(at, error)),
            _ => Ok(()),
        }
    }

    /// Removes the entries of lower layers from a directory and keeps those of this layer.
    pub(super) fn clear(&self, directory: &Path, placed: &PlacedPaths) -> Result<(), UnpackError> {
        let failed = |source| self.failed(directory, source);
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            if !placed.contains(&path) {
                self.remove(&path)?;
            } else if entry.file_type().map_err(failed)?.is_dir() {
                self.clear(&path, placed)?;
            }
        }
        Ok(())
    }

    fn failed(&self, path: &Path, source: io::Error) -> UnpackError {
        let path = path.strip_prefix(&self.0).unwrap_or(path).to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => UnpackError::DiskFull { path },
            _ => UnpackError::Write { path, source },
        }
    }
}
