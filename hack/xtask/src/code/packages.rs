//! Crates of the workspace and the dependencies between them, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use serde::Deserialize;

use crate::shell::{self, cargo, root};

/// The crates of the workspace, by name.
pub(crate) struct Packages(BTreeMap<String, Package>);

struct Package {
    /// Folder of the crate, below the root of the workspace.
    folder: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `dev` or `build`; absent for a normal dependency.
    kind: Option<String>,
}

impl Packages {
    /// Reads the crates from cargo.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let text =
            shell::output(cargo().args(["metadata", "--format-version", "1", "--no-deps", "--offline"]))?;
        Self::parse(&text, &format!("{}/", root().display()))
    }

    /// Parses the answer of `cargo metadata`. `root` is the path of the workspace with a slash at the end.
    fn parse(text: &str, root: &str) -> anyhow::Result<Self> {
        let metadata: Metadata = serde_json::from_str(text).context("cannot parse the metadata of cargo")?;
        let mut packages = BTreeMap::new();
        for package in metadata.packages {
            let path = package.manifest_path.strip_prefix(root);
            let folder = path
                .and_then(|path| path.strip_suffix("/Cargo.toml"))
                .with_context(|| format!("{} is not in the workspace", package.manifest_path))?;
            let dependencies = package.dependencies;
            let entry = Package {
                folder: folder.to_owned(),
                dependencies,
            };
            packages.insert(package.name, entry);
        }
        Ok(Self(packages))
    }

    /// Returns true if the workspace has the crate.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the names of all crates.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the folder of a crate.
    ///
    /// # Errors
    /// The workspace has no such crate.
    pub(crate) fn folder(&self, name: &str) -> anyhow::Result<&str> {
        Ok(&self.get(name)?.folder)
    }

    /// Returns the folders of a crate and of the workspace's crates that it needs, directly or not. With `with_tests`, these
    /// include the crates that only the tests of the crate itself need.
    ///
    /// # Errors
    /// The workspace has no such crate.
    pub(crate) fn closure(&self, name: &str, with_tests: bool) -> anyhow::Result<BTreeSet<String>> {
        let mut folders = BTreeSet::new();
        self.visit(self.get(name)?, with_tests, &mut folders);
        Ok(folders)
    }

    fn get(&self, name: &str) -> anyhow::Result<&Package> {
        self.0
            .get(name)
            .with_context(|| format!("the workspace has no crate {name}"))
    }

    /// Adds the folders of a crate and of its dependencies.
    fn visit(&self, package: &Package, with_tests: bool, folders: &mut BTreeSet<String>) {
        if !folders.insert(package.folder.clone()) {
            return;
        }
        for dependency in &package.dependencies {
            if (with_tests || dependency.kind.as_deref() != Some("dev"))
                && let Some(needed) = self.0.get(&dependency.name)
            {
                self.visit(needed, false, folders);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_dependencies_are_not_needed() {
        let package = |name: &str, dependencies: &[(&str, Option<&str>)]| {
            let dependencies: Vec<_> = dependencies
                .iter()
                .map(|(name, kind)| serde_json::json!({"name": name, "kind": kind}))
                .collect();
            serde_json::json!({
                "name": name,
                "manifest_path": format!("/w/pkg/{name}/Cargo.toml"),
                "dependencies": dependencies,
            })
        };
        let text = serde_json::json!({"packages": [
            package("a", &[("b", None), ("c", Some("dev")), ("serde", None)]),
            package("b", &[("d", Some("dev")), ("e", Some("build"))]),
            package("c", &[("b", None)]),
            package("d", &[]),
            package("e", &[("a", Some("dev"))]),
        ]});
        let packages = Packages::parse(&text.to_string(), "/w/").unwrap();
        let closure = |with_tests: bool| -> Vec<String> {
            let folders = packages.closure("a", with_tests).unwrap();
            folders.into_iter().collect()
        };
        assert_eq!(closure(true), ["pkg/a", "pkg/b", "pkg/c", "pkg/e"]);
        assert_eq!(closure(false), ["pkg/a", "pkg/b", "pkg/e"]);
        assert!(packages.closure("serde", false).is_err());
        assert!(Packages::parse(&text.to_string(), "/other/").is_err());
    }
}
