//! Checks the folders of operator-controller's steps: `gather` writes nothing to the API server, and decisions do no IO.
//!
//! The check looks for names of calls in the sources, because the compiler knows nothing about the purpose of a folder.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

const CONTROLLERS: &str = "pkg/operator-controller/src";
/// Folder of the decisions of both controllers. Their crate links crates that do IO, for types, so a check of the links is not
/// enough.
const DECISIONS: &str = "pkg/decide/src";
/// Calls that write to the API server.
const WRITES: [&str; 10] = [
    ".patch(",
    ".patch_status(",
    ".patch_metadata(",
    ".replace(",
    ".replace_status(",
    ".create(",
    ".delete(",
    ".delete_collection(",
    // Methods of `RevisionStore`.
    ".change(",
    ".clean(",
];
/// Code that does IO: tasks, API calls, clocks, files, sockets.
const IO: [&str; 7] = [
    "async ",
    ".await",
    "kube::Api",
    "tokio::",
    "::now()",
    "std::fs",
    "std::net",
];
/// Name of files that may contain `.create(`, because they create reviews of rights, which change nothing.
const REVIEWS: &str = "rights.rs";

/// Returns a line for every call that the rule of its folder forbids.
pub(super) fn violations() -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    walk(Path::new(DECISIONS), &IO, &mut found)?;
    for controller in ["cluster_extension", "cluster_object_set"] {
        let folder = Path::new(CONTROLLERS).join(controller);
        for (step, forbidden) in [("gather", &WRITES[..]), ("action", &IO[..])] {
            let file = folder.join(step).with_extension("rs");
            if file.is_file() {
                check(&file, forbidden, &mut found)?;
            }
            if folder.join(step).is_dir() {
                walk(&folder.join(step), forbidden, &mut found)?;
            }
        }
    }
    Ok(found)
}

fn walk(folder: &Path, forbidden: &[&str], found: &mut Vec<String>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, forbidden, found)?;
        } else {
            check(&path, forbidden, found)?;
        }
    }
    Ok(())
}

/// Checks the code of a file before its test module. Comments do not count.
fn check(file: &Path, forbidden: &[&str], found: &mut Vec<String>) -> anyhow::Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let reviews = file.file_name().is_some_and(|name| name == REVIEWS);
    for (number, line) in code.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for call in forbidden {
            if line.contains(call) && !(reviews && *call == ".create(") {
                found.push(format!(
                    "{}:{} contains {}",
                    file.display(),
                    number + 1,
                    call.trim()
                ));
            }
        }
    }
    Ok(())
}
