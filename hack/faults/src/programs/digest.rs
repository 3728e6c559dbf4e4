//! Digest of the code that a result depends on.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use data_encoding::HEXLOWER;
use olm_harness::workspace;
use sha2::{Digest as _, Sha256};

/// Digest that grows by files and texts.
#[derive(Debug, Default)]
pub(super) struct Code(Sha256);

impl Code {
    /// Adds a command line, and the content of its program if the first word is the path of one.
    pub(super) fn add_command(&mut self, text: &str) -> Result<()> {
        self.add("command", text.as_bytes());
        let program = text.split_whitespace().next().map(Path::new);
        program
            .filter(|path| path.is_file())
            .map_or(Ok(()), |path| self.add_file(path))
    }

    /// Adds the content of a file, without its path.
    pub(super) fn add_file(&mut self, path: &Path) -> Result<()> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        self.add("file", &bytes);
        Ok(())
    }

    /// Adds the sources of packages of this workspace, and of all packages of it that they are built from.
    pub(super) fn add_sources(&mut self, packages: &[&str]) -> Result<()> {
        let root = workspace::root();
        let mut files = vec![root.join("Cargo.toml"), root.join("Cargo.lock")];
        for folder in folders(packages)? {
            files.push(folder.join("Cargo.toml"));
            list(&folder.join("src"), &mut files)?;
        }
        files.sort();
        for file in files {
            let name = file.strip_prefix(root).unwrap_or(&file);
            self.add("source", name.as_os_str().as_encoded_bytes());
            self.add_file(&file)?;
        }
        Ok(())
    }

    /// Returns the digest as text.
    pub(super) fn digest(self) -> String {
        format!("sha256:{}", HEXLOWER.encode(&self.0.finalize()))
    }

    fn add(&mut self, kind: &str, bytes: &[u8]) {
        self.0.update(kind.as_bytes());
        self.0.update(bytes.len().to_le_bytes());
        self.0.update(bytes);
    }
}

/// Returns the folders of the packages and of those of the workspace that they depend on.
fn folders(packages: &[&str]) -> Result<BTreeSet<PathBuf>> {
    let output = Command::new(workspace::cargo())
        .current_dir(workspace::root())
        .args(["tree", "--edges=normal,build", "--prefix=none", "--format={p}"])
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .output()
        .context("cannot run cargo tree")?;
    ensure!(
        output.status.success(),
        "cargo tree fails: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let folders: BTreeSet<PathBuf> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(folder)
        .collect();
    ensure!(
        folders.len() >= packages.len(),
        "cargo tree names no package of the workspace"
    );
    Ok(folders)
}

/// Returns the folder in a line such as `olm-api v0.1.0 (/home/me/olm/api) (*)`; packages of registries have none.
fn folder(line: &str) -> Option<PathBuf> {
    let (_, rest) = line.split_once(" (/")?;
    let (path, _) = rest.split_once(')')?;
    Some(Path::new("/").join(path))
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_of_a_package_are_those_of_its_dependencies_too() {
        let names: Vec<PathBuf> = folders(&["olm-faults"])
            .unwrap()
            .into_iter()
            .map(|folder| folder.strip_prefix(workspace::root()).unwrap().to_owned())
            .collect();
        for name in ["hack/faults", "test/proof", "test/harness", "api"] {
            assert!(names.contains(&PathBuf::from(name)), "{name} in {names:?}");
        }
        assert_eq!(folder("serde v1.0.0 (proc-macro)"), None);
    }

    #[test]
    fn content_and_order_of_what_is_added_determine_the_digest() {
        let digest = |texts: &[&str]| {
            let mut code = Code::default();
            for text in texts {
                code.add_command(text).unwrap();
            }
            code.digest()
        };
        assert_eq!(digest(&["a", "b"]), digest(&["a", "b"]));
        assert_ne!(digest(&["a", "b"]), digest(&["ab"]));
        assert_ne!(digest(&["a", "b"]), digest(&["b", "a"]));
    }
}
