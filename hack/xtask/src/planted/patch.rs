//! Parser of the patches in test/simulation/planted: lines that name the source and the effect of a bug, and below them the diff.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use crate::shell::root;

/// Folder of the patches.
pub(super) const FOLDER: &str = "test/simulation/planted";

/// A bug of production code.
#[derive(Clone, Debug)]
pub(super) struct Patch {
    /// Name of the file without its ending.
    pub(super) name: String,
    /// Path of the patch file.
    pub(super) path: PathBuf,
    /// Source: an issue or a pull request in which somebody fixed such a bug, or a rule of the project.
    pub(super) source: String,
    /// Effect of the bug on the controllers, as a sentence.
    pub(super) what: String,
    /// Scenario to hunt in, for a bug that only certain faults bring out; if absent, all scenarios.
    pub(super) scenario: Option<String>,
}

/// Returns the patches, sorted by name.
pub(super) fn all() -> anyhow::Result<Vec<Patch>> {
    let folder = root().join(FOLDER);
    let mut patches = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "patch") {
            patches.push(read(path)?);
        }
    }
    patches.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(patches)
}

/// Reads the lines above the diff of a patch.
fn read(path: PathBuf) -> anyhow::Result<Patch> {
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let head = |name: &str| {
        let mut lines = text.lines().take_while(|line| !line.starts_with("--- "));
        let found = lines.find_map(|line| line.strip_prefix(name));
        found.map(|rest| rest.trim().to_owned())
    };
    let needed = |name: &str| {
        head(name).with_context(|| format!("{} lacks a line {name:?} above its diff", path.display()))
    };
    let (source, what) = (needed("Source:")?, needed("What:")?);
    let scenario = head("Scenario:");
    ensure!(
        !source.is_empty() && !what.is_empty(),
        "{} has an empty line",
        path.display()
    );
    Ok(Patch {
        name: name(&path),
        path,
        source,
        what,
        scenario,
    })
}

fn name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::git;

    /// Maximum number of lines that a patch adds, and that it removes.
    const LINES: usize = 10;

    fn changed(text: &str, sign: char) -> usize {
        let diff = text.lines().skip_while(|line| !line.starts_with("@@"));
        diff.filter(|line| line.starts_with(sign)).count()
    }

    #[test]
    fn every_patch_applies_to_the_tree_and_is_small() {
        let patches = all().unwrap();
        assert!(patches.len() >= 65, "{}", patches.len());
        for patch in patches {
            let name = &patch.name;
            let text = fs::read_to_string(&patch.path).unwrap();
            assert!(
                changed(&text, '+') <= LINES && changed(&text, '-') <= LINES,
                "{name}"
            );
            let files: Vec<&str> = text
                .lines()
                .filter_map(|line| line.strip_prefix("+++ b/"))
                .collect();
            assert!(
                !files.is_empty() && files.iter().all(|file| file.starts_with("pkg/")),
                "{name} changes {files:?}"
            );
            let output = git(&root()).args(["apply", "--check"]).arg(&patch.path).output();
            let output = output.unwrap();
            assert!(
                output.status.success(),
                "{name}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }

    #[test]
    fn a_patch_without_a_source_is_refused() {
        let folder = std::env::temp_dir().join(format!("planted-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("bug.patch");
        fs::write(&path, "What: something\n--- a/x\n+++ b/x\nSource: too late\n").unwrap();
        let error = read(path.clone()).unwrap_err().to_string();
        assert!(error.contains("\"Source:\""), "{error}");
        fs::write(&path, "Source: own\nWhat: something\n--- a/x\n").unwrap();
        assert_eq!(read(path).unwrap().name, "bug");
        fs::remove_dir_all(folder).unwrap();
    }
}
