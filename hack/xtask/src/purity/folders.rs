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

/// Returns a line for every call that the rule of its folder forbids. `root` is the root of the workspace.
pub(super) fn violations(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    walk(root, Path::new(DECISIONS), &IO, &mut found)?;
    for controller in ["cluster_extension", "cluster_object_set"] {
        let folder = Path::new(CONTROLLERS).join(controller);
        for (step, forbidden) in [("gather", &WRITES[..]), ("action", &IO[..])] {
            let file = folder.join(step).with_extension("rs");
            if root.join(&file).is_file() {
                check(root, &file, forbidden, &mut found)?;
            }
            if root.join(&folder).join(step).is_dir() {
                walk(root, &folder.join(step), forbidden, &mut found)?;
            }
        }
    }
    Ok(found)
}

/// Checks the files below `folder`, a path in the workspace.
fn walk(root: &Path, folder: &Path, forbidden: &[&str], found: &mut Vec<String>) -> anyhow::Result<()> {
    let entries =
        fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            walk(root, &path, forbidden, found)?;
        } else {
            check(root, &path, forbidden, found)?;
        }
    }
    Ok(())
}

/// Checks the code of a file before its test module. Comments do not count.
fn check(root: &Path, file: &Path, forbidden: &[&str], found: &mut Vec<String>) -> anyhow::Result<()> {
    let text =
        fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {}", file.display()))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    #[test]
    fn forbidden_calls_are_found() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            "pkg/decide/src/a/b.rs",
            "// tokio::spawn\nlet now = Timestamp::now();\n#[cfg(test)]\nmod tests { use std::fs; }\n",
        );
        let steps = "pkg/operator-controller/src/cluster_extension";
        write(&format!("{steps}/gather.rs"), "api.patch(x)\n");
        write(&format!("{steps}/gather/rights.rs"), "api.create(x)\n");
        write(&format!("{steps}/gather/other.rs"), "api.create(x)\n");
        write(&format!("{steps}/action.rs"), "task.await\n");
        write(&format!("{steps}/act.rs"), "api.patch(x).await\n");
        let mut found = violations(root.path()).unwrap();
        found.sort();
        let expected = [
            "pkg/decide/src/a/b.rs:2 contains ::now()".to_owned(),
            format!("{steps}/action.rs:1 contains .await"),
            format!("{steps}/gather.rs:1 contains .patch("),
            format!("{steps}/gather/other.rs:1 contains .create("),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_workspace_obeys() {
        assert_eq!(violations(&shell::root()).unwrap(), [""; 0]);
    }
}
