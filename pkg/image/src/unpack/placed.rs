//! Paths that one layer has placed, in memory that does not grow with their length.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    path::Path,
};

/// Keyed hashes of paths: nobody who makes a layer can make two of them equal.
#[derive(Debug, Default)]
pub(super) struct Placed {
    key: RandomState,
    hashes: HashSet<u64>,
}

impl Placed {
    /// Adds a path; returns false when it is there already.
    pub(super) fn insert(&mut self, path: &Path) -> bool {
        self.hashes.insert(self.key.hash_one(path))
    }

    /// Reports whether a path was added.
    pub(super) fn contains(&self, path: &Path) -> bool {
        self.hashes.contains(&self.key.hash_one(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_known_again() {
        let mut placed = Placed::default();
        assert!(placed.insert(Path::new("/a/b")));
        assert!(!placed.insert(Path::new("/a/b")));
        assert!(placed.contains(Path::new("/a/b")));
        assert!(!placed.contains(Path::new("/a")));
    }
}
