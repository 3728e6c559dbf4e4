//! Seeds of the fuzz targets: a few small inputs for each target, which the repository contains.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::Target;
use crate::shell::{self, root};

/// Maximum number of seeds of a target.
pub(super) const MAX_SEEDS: usize = 40;
/// Maximum size of a seed, in bytes.
pub(super) const MAX_SEED: u64 = 2048;

/// Returns the folder of the target's seeds.
pub(super) fn seeds(target: &Target) -> PathBuf {
    target.folder().join("corpus").join(&target.name)
}

/// Returns the paths of the files in a folder, relative to the repository where possible. A missing folder has no files.
pub(super) fn files(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            let path = entry.path();
            let path = path.strip_prefix(root()).unwrap_or(&path);
            path.display().to_string()
        })
        .collect()
}

/// Copies the seeds to a folder beside the builds, and returns the folder. libFuzzer adds every input that it keeps to this
/// folder. Inputs of earlier runs stay there, so that a later run continues from them.
pub(super) fn copy(target: &Target, build_dir: &Path) -> anyhow::Result<PathBuf> {
    let folder = build_dir.join("corpus").join(&target.package).join(&target.name);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for entry in fs::read_dir(seeds(target)).into_iter().flatten() {
        let entry = entry?;
        let copy = folder.join(entry.file_name());
        fs::copy(entry.path(), &copy).with_context(|| format!("cannot write {}", copy.display()))?;
    }
    Ok(folder)
}

/// Minimises the folder `inputs`, and replaces the seeds of the target by at most [`MAX_SEEDS`] of the small inputs in it.
///
/// Seeds whose names do not come from libFuzzer stay, because people wrote them.
pub(super) fn keep(target: &Target, inputs: &Path) -> anyhow::Result<()> {
    shell::run(target.cargo_fuzz("cmin").arg(&target.name).arg(inputs))
        .with_context(|| format!("cannot minimise the corpus of {}", target.title()))?;
    let folder = seeds(target);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut written = 0;
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        if is_found(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path())?;
        } else {
            written += 1;
        }
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(inputs)? {
        let entry = entry?;
        let (size, name) = (entry.metadata()?.len(), entry.file_name());
        if size <= MAX_SEED && is_found(&name.to_string_lossy()) {
            found.push((size, name));
        }
    }
    for name in spread(found, MAX_SEEDS.saturating_sub(written)) {
        fs::copy(inputs.join(&name), folder.join(&name))?;
    }
    Ok(())
}

/// Returns true for a name that libFuzzer gives an input: its SHA-1 in hexadecimal digits.
fn is_found(name: &str) -> bool {
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns at most `count` of the names, evenly spread over the sizes of their inputs.
fn spread<N: Ord>(mut found: Vec<(u64, N)>, count: usize) -> Vec<N> {
    found.sort();
    let total = found.len();
    let is_kept = |at: usize| total <= count || (at * count) / total != ((at + 1) * count) / total;
    let kept = found.into_iter().enumerate().filter(|(at, _)| is_kept(*at));
    kept.map(|(_, (_, name))| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_spread_over_the_sizes() {
        let found: Vec<(u64, u64)> = (0..100).map(|size| (size, size)).collect();
        assert_eq!(spread(found.clone(), 4), [24, 49, 74, 99]);
        assert_eq!(spread(found.clone(), 100).len(), 100);
        assert_eq!(spread(found, 0), Vec::<u64>::new());
    }

    #[test]
    fn names_of_people_are_told_from_those_of_the_fuzzer() {
        assert!(is_found("356a192b7913b04c54574d18c28d46e6395428ab"));
        assert!(!is_found("csv.yaml"));
    }
}
