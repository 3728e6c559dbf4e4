//! Files that arrive one by one, in the order in which [`crate::walk`] would list them.

use std::{
    ffi::{OsStr, OsString},
    fmt,
};

use crate::{IGNORE_FILE, WalkLimits};

/// Check that entries of a directory arrive in the order of [`crate::walk`], and within its limits. The files that it admits until
/// [`InOrder::finish`] are exactly those that `walk` lists in the complete directory, with the same names.
#[derive(Debug)]
pub struct InOrder {
    limits: WalkLimits,
    /// Components of the last entry that is not a repeated directory.
    last: Vec<OsString>,
    last_is_file: bool,
    /// The directory itself is known to exist.
    exists: bool,
    entries: u64,
    path_bytes: u64,
    bytes: u64,
}

/// Reason why only the complete directory shows which files a catalog has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unordered(&'static str);

impl fmt::Display for Unordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl InOrder {
    /// Starts with the first entry of a directory.
    pub fn new(limits: &WalkLimits) -> Self {
        Self {
            limits: *limits,
            last: Vec::new(),
            last_is_file: false,
            exists: false,
            entries: 0,
            path_bytes: 0,
            bytes: 0,
        }
    }

    /// Admits a directory by the components of its path; none is the directory that is read.
    ///
    /// # Errors
    /// The directory does not follow the entries before it, or exceeds a limit.
    pub fn folder(&mut self, path: &[OsString]) -> Result<(), Unordered> {
        let known = path.len() < self.last.len() || !self.last_is_file;
        if known && self.last.starts_with(path) {
            self.exists = true;
            return Ok(());
        }
        self.admit(path, path.len())?;
        self.last_is_file = false;
        Ok(())
    }

    /// Admits a file of `size` bytes by the components of its path; returns its name.
    ///
    /// # Errors
    /// The file does not follow the entries before it, changes which files are read, or exceeds a limit.
    pub fn file(&mut self, path: &[OsString], size: u64) -> Result<String, Unordered> {
        let Some((own, above)) = path.split_last() else {
            return Err(Unordered("the directory is a file"));
        };
        if own == IGNORE_FILE {
            return Err(Unordered("the catalog has an .indexignore"));
        }
        let name = self.admit(path, above.len())?;
        self.last_is_file = true;
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > self.limits.max_bytes {
            return Err(Unordered("the files are too large"));
        }
        Ok(name)
    }

    /// Ends the entries.
    ///
    /// # Errors
    /// There was no entry, so that the directory may not exist.
    pub fn finish(&self) -> Result<(), Unordered> {
        if self.exists {
            Ok(())
        } else {
            Err(Unordered("the directory has no entry"))
        }
    }

    /// Admits a new entry below `depth` directories; returns its name.
    fn admit(&mut self, path: &[OsString], depth: usize) -> Result<String, Unordered> {
        let shared = path.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        match (path.get(shared), self.last.get(shared)) {
            (Some(new), Some(last)) if bytes(new) > bytes(last) => {}
            (Some(_), None) if !self.last_is_file => {}
            _ => return Err(Unordered("the entries are in another order, or repeat")),
        }
        if depth as u64 > self.limits.max_depth {
            return Err(Unordered("the directories are too deep"));
        }
        let mut name = String::new();
        for (at, part) in path.iter().enumerate() {
            let part = part.to_str().ok_or(Unordered("a name is not UTF-8"))?;
            if at >= shared {
                self.entries += 1;
                self.path_bytes += (name.len() + part.len() + 1) as u64;
            }
            if at > 0 {
                name.push('/');
            }
            name.push_str(part);
        }
        if self.entries > self.limits.max_entries || self.path_bytes > self.limits.max_path_bytes() {
            return Err(Unordered("there are too many entries"));
        }
        self.exists = true;
        self.last = path.to_vec();
        Ok(name)
    }
}

fn bytes(part: &OsStr) -> &[u8] {
    part.as_encoded_bytes()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs, os::unix::ffi::OsStringExt as _, path::Path};

    use proptest::prelude::*;

    use super::*;
    use crate::walk;

    fn parts(path: &str) -> Vec<OsString> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.map(OsString::from).collect()
    }

    /// Admits entries; those that end with a slash are directories.
    fn admitted(entries: &[&str], limits: &WalkLimits) -> Result<Vec<String>, Unordered> {
        let mut order = InOrder::new(limits);
        let mut names = Vec::new();
        for entry in entries {
            if entry.ends_with('/') {
                order.folder(&parts(entry))?;
            } else {
                names.push(order.file(&parts(entry), 1)?);
            }
        }
        order.finish().map(|()| names)
    }

    #[test]
    fn entries_of_a_sorted_tree_are_admitted() {
        let limits = WalkLimits::default();
        let entries = [
            "/", "a/", "a/b", "a/c/", "a/", "a/c/", "a/c/x", "a-b", "b/y/z", "/", "b/z",
        ];
        assert_eq!(
            admitted(&entries, &limits).unwrap(),
            ["a/b", "a/c/x", "a-b", "b/y/z", "b/z"]
        );
        assert_eq!(admitted(&["/"], &limits).unwrap(), [""; 0]);
        assert_eq!(
            admitted(&[".indexignore/", ".indexignore/a"], &limits)
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn what_only_the_complete_directory_shows_is_refused() {
        for entries in [
            &["b", "a"][..],
            &["a", "a"],
            &["a", "a/"],
            &["a", "a/b"],
            &["a/b", "a"],
            &["a/", "a"],
            &["a-b", "a/c"],
            &["b/", "a"],
            &["a/c/", "a/b/", "a/d"],
            &["a/b", "c", "a/"],
            &["a", ".indexignore"],
            &["a/.indexignore"],
            &[],
        ] {
            assert!(admitted(entries, &WalkLimits::default()).is_err(), "{entries:?}");
        }
        let mut order = InOrder::new(&WalkLimits::default());
        assert!(order.file(&[], 1).is_err());
        let invalid = OsString::from_vec(vec![0xe4]);
        assert!(order.folder(&["a".into(), invalid]).is_err());
    }

    /// Writes files of one byte and empty directories.
    fn write(root: &Path, tree: &BTreeMap<Vec<String>, bool>) {
        for (path, is_file) in tree {
            let path = root.join(path.join("/"));
            if *is_file {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "x").unwrap();
            } else {
                fs::create_dir_all(path).unwrap();
            }
        }
    }

    /// Trees by path; true for a file. Nothing is below a file.
    fn tree() -> impl Strategy<Value = BTreeMap<Vec<String>, bool>> {
        let part =
            prop::sample::select(vec!["a", "a-", "a.", "ab", "b", "B", "é", "0"]).prop_map(str::to_owned);
        let path = prop::collection::vec(part, 1..4);
        prop::collection::btree_map(path, any::<bool>(), 0..12).prop_map(|tree| {
            let below_file =
                |path: &Vec<String>| (1..path.len()).any(|length| tree.get(&path[..length]) == Some(&true));
            let sound = tree.iter().filter(|(path, _)| !below_file(path));
            sound.map(|(path, is_file)| (path.clone(), *is_file)).collect()
        })
    }

    fn archive(tree: &BTreeMap<Vec<String>, bool>) -> Vec<String> {
        let entry = |(path, is_file): (&Vec<String>, &bool)| path.join("/") + if *is_file { "" } else { "/" };
        std::iter::once("/".to_owned())
            .chain(tree.iter().map(entry))
            .collect()
    }

    proptest! {
        #[test]
        fn admitted_files_and_limits_are_those_of_the_directory(
            tree in tree(), entries in 0..12_u64, depth in 0..4_u64, size in 0..8_u64,
        ) {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), &tree);
            let archive = archive(&tree);
            let archive: Vec<&str> = archive.iter().map(String::as_str).collect();
            for limits in [
                WalkLimits::default(),
                WalkLimits { max_entries: entries, ..WalkLimits::default() },
                WalkLimits { max_depth: depth, ..WalkLimits::default() },
                WalkLimits { max_bytes: size, ..WalkLimits::default() },
            ] {
                let listed = walk(root.path(), &limits).map(|files| files.map(|(_, name)| name).collect::<Vec<_>>());
                prop_assert_eq!(listed.ok(), admitted(&archive, &limits).ok());
            }
        }

        /// Entries in any order, some of them twice, are refused or lead to the same files.
        #[test]
        fn another_order_never_gives_other_files(
            tree in tree(), order in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let entries = archive(&tree);
            let chosen: Vec<&str> = order.iter().map(|at| at.get(&entries).as_str()).collect();
            let root = tempfile::tempdir().unwrap();
            for entry in &chosen {
                let path = root.path().join(entry.trim_matches('/'));
                if entry.ends_with('/') {
                    fs::create_dir_all(path).unwrap();
                } else {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, "x").unwrap();
                }
            }
            let limits = WalkLimits::default();
            if let Ok(names) = admitted(&chosen, &limits) {
                let listed: Vec<_> = walk(root.path(), &limits).unwrap().map(|(_, name)| name).collect();
                prop_assert_eq!(names, listed);
            }
        }
    }
}
