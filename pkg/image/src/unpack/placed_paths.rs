//! Set of paths placed by one layer, in memory independent of their length.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    path::Path,
};

/// Keyed hashes of paths: the author of a layer cannot produce collisions.
#[derive(Debug, Default)]
pub(super) struct PlacedPaths {
    key: RandomState,
    hashes: HashSet<u64>,
}

impl PlacedPaths {
    /// Adds a path; returns false if it is already present.
    pub(super) fn insert(&mut self, path: &Path) -> bool {
        self.hashes.insert(self.key.hash_one(path))
    }

    /// Returns true if a path was added.
    pub(super) fn contains(&self, path: &Path) -> bool {
        self.hashes.contains(&self.key.hash_one(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_known_again() {
        let mut placed = PlacedPaths::default();
        assert!(placed.insert(Path::new("/a/b")));
        assert!(!placed.insert(Path::new("/a/b")));
        assert!(placed.contains(Path::new("/a/b")));
        assert!(!placed.contains(Path::new("/a")));
    }
}
