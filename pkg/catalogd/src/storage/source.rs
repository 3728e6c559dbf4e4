//! Sources of a catalog's files.

use std::{fs, io::Read, path::Path};

use olm_catalog_files::{WalkLimits, walk};

use super::StorageError;

/// Visitor of the files of a catalog, with name, length and content of each. Returns false to end.
pub type VisitFile<'v> = dyn FnMut(&str, u64, &mut dyn Read) -> Result<bool, StorageError> + 'v;

/// Files of a catalog.
pub trait Source {
    /// Calls `visit` with the files in the order of [`walk`].
    ///
    /// # Errors
    /// The files cannot be read, exceed the limits, or `visit` fails. Files that were visited before say nothing then.
    fn each(&mut self, limits: &WalkLimits, visit: &mut VisitFile<'_>) -> Result<(), StorageError>;
}

/// Catalog in a directory.
pub(super) struct Folder<'a>(pub(super) &'a Path);

impl Source for Folder<'_> {
    fn each(&mut self, limits: &WalkLimits, visit: &mut VisitFile<'_>) -> Result<(), StorageError> {
        for (path, name) in walk(self.0, limits)? {
            let mut file = fs::File::open(&path).map_err(StorageError::io("open", &path))?;
            let length = file.metadata().map_err(StorageError::io("read", &path))?.len();
            if !visit(&name, length, &mut file)? {
                break;
            }
        }
        Ok(())
    }
}
