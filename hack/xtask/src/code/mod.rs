//! Digests of the workspace's code. A result of a test or an exploration holds while the digest of its code stays the same.
//!
//! A digest covers what a crate does. Changes of comments, formatting, Markdown files and the crate's own tests do not change it.
//! The versions of external crates are not part of it.

mod files;
mod packages;
mod rust;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::Path;
use std::rc::Rc;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

pub(crate) use self::files::Files;
pub(crate) use self::packages::Packages;
use self::rust::{Split, split};

/// Names of folders whose files are tests.
const TESTS: [&str; 2] = ["tests", "snapshots"];
/// Folders at the top of a crate whose files are neither its code nor its tests: benchmarks, fuzz crates, patches with planted
/// bugs.
const NEITHER: [&str; 3] = ["benches", "fuzz", "planted"];
/// Folders of code that count for themselves, not for their crates. What needs their code names them beside the crate.
const APART: [&str; 1] = [
    // The walks over pairs of specs; faults are explored without them.
    "test/simulation/src/pairs",
];

/// Files and crates of the checkout.
pub(crate) struct Checkout {
    pub(crate) files: Files,
    pub(crate) packages: Packages,
}

impl Checkout {
    /// Reads the checkout.
    ///
    /// # Errors
    /// Git or cargo fails.
    pub(crate) fn read() -> anyhow::Result<Self> {
        Ok(Self {
            files: Files::now()?,
            packages: Packages::read()?,
        })
    }
}

/// Digests of the code in one folder and of its tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code {
    /// Digest of the code without its tests.
    pub(crate) digest: String,
    /// Digests of the items in the tests, without imports.
    pub(crate) tests: BTreeSet<String>,
}

/// Returns the digests of the code in `names`, which are folders of crates, other folders, or files. For a folder without a
/// Cargo.toml and for a file, the digest covers all bytes.
pub(crate) fn digests<'a>(
    files: &Files,
    names: impl IntoIterator<Item = &'a String>,
) -> BTreeMap<String, String> {
    let names = names.into_iter();
    names
        .map(|name| (name.clone(), code(files, name).digest.clone()))
        .collect()
}

/// Combines digests and their names to one digest.
pub(crate) fn sum<N: Display>(digests: impl IntoIterator<Item = (N, String)>) -> String {
    let lines: Vec<String> = digests
        .into_iter()
        .map(|(name, digest)| format!("{name} {digest}\n"))
        .collect();
    short(lines.concat().as_bytes())
}

/// Returns the digests of a folder or a file, from the cache of `files` if possible.
pub(crate) fn code(files: &Files, name: &str) -> Rc<Code> {
    let known = files.codes.borrow().get(name).cloned();
    known.unwrap_or_else(|| {
        let code = Rc::new(read(files, name));
        files.codes.borrow_mut().insert(name.to_owned(), Rc::clone(&code));
        code
    })
}

/// Computes the digests of a folder or a file.
fn read(files: &Files, name: &str) -> Code {
    let below: Vec<(&str, &[u8])> = files.below(name).collect();
    if files.get(&format!("{name}/Cargo.toml")).is_none() {
        let all = below.into_iter().map(|(path, bytes)| (path, short(bytes)));
        return Code {
            digest: sum(all),
            tests: BTreeSet::new(),
        };
    }
    let splits: BTreeMap<&str, Split> = below
        .iter()
        .filter(|(path, _)| has_ending(path, "rs"))
        .filter_map(|(path, bytes)| Some((*path, split(path, std::str::from_utf8(bytes).ok()?)?)))
        .collect();
    let modules: Vec<&String> = splits.values().flat_map(|split| &split.test_modules).collect();
    let mut tests = BTreeSet::new();
    let mut code = Vec::new();
    let apart = |path: &str| APART.iter().any(|folder| is_of(path, folder));
    for (path, bytes) in below.into_iter().filter(|(path, _)| !apart(path)) {
        let mut inner = path
            .strip_prefix(name)
            .unwrap_or(path)
            .split('/')
            .skip(1)
            .peekable();
        if inner.peek().is_some_and(|first| NEITHER.contains(first)) || has_ending(path, "md") {
            continue;
        }
        let is_test =
            inner.any(|part| TESTS.contains(&part)) || modules.iter().any(|module| is_of(path, module));
        let split = splits.get(path);
        if let Some(split) = split {
            let items = split.tests.iter().chain(split.code.iter().filter(|_| is_test));
            tests.extend(items.map(|item| short(item.as_bytes())));
        } else if is_test {
            tests.insert(short(&[path.as_bytes(), bytes].concat()));
        }
        if !is_test {
            code.push((
                path,
                split.map_or_else(|| short(bytes), |split| short(split.all().as_bytes())),
            ));
        }
    }
    Code {
        digest: sum(code),
        tests,
    }
}

fn has_ending(path: &str, ending: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == ending)
}

/// Returns true if `path` is the file of the module or is in the module's folder. `module` is a path without `.rs`.
fn is_of(path: &str, module: &str) -> bool {
    path.strip_prefix(module)
        .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// Returns the first 48 bits of the SHA-256 as hexadecimal digits. Short digests suffice, and people read the files that contain
/// them.
fn short(bytes: &[u8]) -> String {
    let mut text = HEXLOWER.encode(&Sha256::digest(bytes));
    text.truncate(12);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    fn of(files: &[(&str, &str)]) -> Code {
        let owned = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        let files = owned.collect::<BTreeMap<_, _>>().into();
        code(&files, "pkg/x").as_ref().clone()
    }

    #[test]
    fn the_digest_of_a_crate_is_that_of_its_code() {
        let manifest = ("pkg/x/Cargo.toml", "");
        let lib = ("pkg/x/src/lib.rs", "pub fn f() {}\n#[cfg(test)]\nmod tests;");
        let base = of(&[manifest, lib]);
        let tests = (
            "pkg/x/src/tests.rs",
            "use super::f;\n#[test]\nfn a() {}\n#[test]\nfn b() {}",
        );
        let deeper = ("pkg/x/src/tests/more.rs", "#[test]\nfn c() {}");
        let other = ("pkg/x/tests/d.rs", "#[test]\nfn d() {}");
        let snapshot = ("pkg/x/src/snapshots/a.snap", "text");
        for same in [
            ("pkg/x/README.md", "text"),
            ("pkg/x/benches/b.rs", "fn main() {}"),
            ("pkg/x/fuzz/fuzz_targets/t.rs", "fn t() {}"),
            ("pkg/x/planted/bug.patch", "text"),
            ("pkg/xy/src/lib.rs", "fn y() {}"),
        ] {
            assert_eq!(of(&[manifest, lib, same]), base, "{}", same.0);
        }
        let tested = of(&[manifest, lib, tests, deeper, other, snapshot]);
        assert_eq!(tested.digest, base.digest);
        assert_eq!((base.tests.len(), tested.tests.len()), (0, 5));
        for changed in [
            ("pkg/x/src/data.json", "{}"),
            ("pkg/x/src/m.rs", "fn m() {}"),
            ("pkg/x/src/bad.rs", "fn {"),
            ("pkg/x/src/testing.rs", "fn m() {}"),
            ("pkg/x/src/fuzz/m.rs", "fn m() {}"),
        ] {
            assert_ne!(of(&[manifest, lib, changed]).digest, base.digest, "{}", changed.0);
        }
    }

    #[test]
    fn a_folder_apart_counts_for_itself() {
        let of = |name: &str, text: &str| {
            let files = [
                ("test/simulation/Cargo.toml", ""),
                ("test/simulation/src/lib.rs", "mod pairs;"),
                ("test/simulation/src/pairs/mod.rs", text),
            ];
            let owned = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
            code(&BTreeMap::from(owned).into(), name).digest.clone()
        };
        let (before, after) = ("fn a() {}", "fn b() {}");
        let (krate, apart) = ("test/simulation", "test/simulation/src/pairs");
        assert_eq!(of(krate, before), of(krate, after));
        assert_ne!(of(apart, before), of(apart, after));
    }

    #[test]
    fn every_folder_apart_exists() {
        for folder in APART {
            assert!(shell::root().join(folder).is_dir(), "{folder}");
        }
    }

    #[test]
    fn a_folder_that_is_no_crate_counts_as_it_is() {
        let file = |text| of(&[("pkg/x/a.md", text)]).digest;
        assert_ne!(file("a"), file("b"));
    }
}
