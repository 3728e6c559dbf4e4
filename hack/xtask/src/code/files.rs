//! Files of the checkout or of a commit, in memory.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Context as _;

use super::Code;
use crate::shell::{self, git, root};

/// Contents of files, by path below the root of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Files {
    contents: BTreeMap<String, Vec<u8>>,
    /// Cache of digests, by folder. Parsing is slow, and the parts of the proof share most of their crates.
    pub(super) codes: RefCell<BTreeMap<String, Rc<Code>>>,
}

impl Files {
    /// Reads the files of the checkout: those that git tracks, and new ones that it does not ignore.
    pub(crate) fn now() -> anyhow::Result<Self> {
        let listed = shell::output(git(&root()).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        let mut files = BTreeMap::new();
        for file in listed.split('\0').filter(|file| !file.is_empty()) {
            let path = root().join(file);
            // git also lists files whose deletion is not committed yet.
            if path.is_file() {
                let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                files.insert(file.to_owned(), bytes);
            }
        }
        Ok(files.into())
    }

    /// Reads the files of a commit.
    ///
    /// # Errors
    /// The repository lacks the commit.
    pub(crate) fn at(commit: &str) -> anyhow::Result<Self> {
        let output = git(&root())
            .args(["archive", "--format=tar", "--end-of-options", commit])
            .output()
            .context("cannot start git")?;
        anyhow::ensure!(output.status.success(), "git has no commit {commit}");
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(output.stdout.as_slice()).entries()? {
            let mut entry = entry?;
            if entry.header().entry_type().is_file() {
                let path = entry.path()?.display().to_string();
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                files.insert(path, bytes);
            }
        }
        Ok(files.into())
    }

    /// Returns the content of a file.
    pub(super) fn get(&self, path: &str) -> Option<&[u8]> {
        self.contents.get(path).map(Vec::as_slice)
    }

    /// Returns the files in the folder `name`, or the file `name`.
    pub(super) fn below<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let all = self
            .contents
            .iter()
            .map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
        all.filter(move |(path, _)| {
            path.strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Returns true if a file or a folder of this name exists.
    #[cfg(test)]
    pub(crate) fn has(&self, name: &str) -> bool {
        self.below(name).next().is_some()
    }

    /// Writes the files to `folder` and removes all other files there. Equal files keep their times, so that builds of the folder
    /// stay valid.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let mut wanted = BTreeSet::new();
        for (file, bytes) in &self.contents {
            let path = folder.join(file);
            if fs::read(&path).ok().as_ref() != Some(bytes) {
                fs::create_dir_all(path.parent().unwrap_or(folder))?;
                fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
            }
            wanted.insert(path);
        }
        remove_others(folder, &wanted)
    }
}

/// Removes the files below `folder` that are not in `wanted`, and folders that become empty.
fn remove_others(folder: &Path, wanted: &BTreeSet<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, wanted)?;
            // The removal fails if the folder is not empty.
            let _ = fs::remove_dir(&path);
        } else if !wanted.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

impl From<BTreeMap<String, Vec<u8>>> for Files {
    fn from(contents: BTreeMap<String, Vec<u8>>) -> Self {
        let codes = RefCell::default();
        Self { contents, codes }
    }
}
